import { type Document, isMap, isScalar, visit } from 'yaml'

/** Kinds that are or create Services: names in them stay. */
const OWN_KINDS: ReadonlySet<string> = new Set([
  'Deployment',
  'EndpointSlice',
  'Endpoints',
  'Pod',
  'ReplicaSet',
  'Service',
])

/** The fields of a document that are read here. */
interface Named {
  readonly kind: string
  readonly name: string
}

/**
 * Replaces names of Services that the other controller creates for proxies by those of the operator, wherever they
 * occur (HTTPRoute, Ingress, backend URLs). Returns one sentence per change.
 */
export function serviceRenamer(
  documents: readonly Named[],
  ownedName: (proxy: string) => string,
): (document: Document) => string[] {
  const names = (kind: string) => documents.filter((one) => one.kind === kind).map(({ name }) => name)
  const servers = new Set(names('MCPServer'))
  const renamed = new Map<string, string>()
  for (const name of names('MCPRemoteProxy')) {
    renamed.set(`mcp-${name}-remote-proxy`, ownedName(name))
    // The proxy of a server has a name derived from the server's.
    if (!servers.has(name)) renamed.set(`mcp-${name}-proxy`, ownedName(name))
  }
  return (document) => {
    const { contents } = document
    if (renamed.size === 0 || !isMap(contents) || OWN_KINDS.has(String(document.get('kind')))) return []
    const found = new Set<string>()
    for (const { key, value } of contents.items) {
      if (isScalar(key) && key.value === 'metadata') continue
      visit(value as Document, {
        Scalar(at, node) {
          if (at === 'key' || typeof node.value !== 'string') return
          node.value = node.value.replaceAll(/(?<![\w.-])mcp-[a-z0-9.-]+?-proxy(?![\w-])/g, (written) => {
            const wanted = renamed.get(written)
            if (wanted !== undefined) found.add(written)
            return wanted ?? written
          })
        },
      })
    }
    return [...found].map((name) => `the Service ${name} is named ${renamed.get(name)} here`)
  }
}
