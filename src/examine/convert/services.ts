import { type Document, isMap, isScalar, visit } from 'yaml'

/** Kinds that are or make the Service themselves: a name in them is theirs. */
const OWN_KINDS: ReadonlySet<string> = new Set([
  'Deployment',
  'EndpointSlice',
  'Endpoints',
  'Pod',
  'ReplicaSet',
  'Service',
])

/** What a document says of itself, as far as it is looked at here. */
interface Named {
  readonly kind: string
  readonly name: string
}

/**
 * Replaces the names of Services that the other controller made for proxies by those that the operator makes, wherever they
 * are written (HTTPRoute, Ingress, URLs of backends), and gives a sentence for each.
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
    // A server of that name has a proxy of this name.
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
    return [...found].map((name) => `the Service ${name} is ${renamed.get(name)} here`)
  }
}
