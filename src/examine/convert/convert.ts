import { Document, isMap, isScalar, isSeq, parseAllDocuments, visit } from 'yaml'
import {
  DEFAULT_API_GROUP,
  DOCUMENT_KINDS,
  parseDocuments,
  type Problem,
  resolveProxy,
  WRITTEN_YAML,
} from '../../load/index.ts'
import { DEFAULT_NAMESPACE } from '../../fields/index.ts'
import { ownedName } from '../../operator/index.ts'
import { rewrite } from './rewrite.ts'
import { serviceRenamer } from './services.ts'

interface Text {
  readonly path: string
  readonly text: string
}

/** Result of a conversion. */
export interface Converted {
  /** Supported documents as YAML, each with its changes as comments above it. */
  readonly output: string
  /** Unsupported fields with an effect, and what to do. */
  readonly refused: readonly { readonly where: string; readonly what: string }[]
}

/** Aliases were limited by the first parse. */
const UNBOUNDED = -1

/** The kind whose documents need the other controller. */
const SERVER = 'MCPServer'
const NO_SERVER =
  'mcp-extauth runs no servers: keep it with its controller, and add the proxy as a sidecar, or as an MCPRemoteProxy whose remoteUrl is its Service'

/**
 * Converts manifests of other API groups. `parseDocuments` must have validated the texts before, including size
 * limits. Fields that restrict callers, tools or traffic are never removed: unsupported ones are in `refused` and in
 * the output.
 */
export function convert(texts: readonly Text[]): Converted {
  const refused: Converted['refused'][number][] = []
  const read = texts.map(({ path, text }) => {
    const documents = parseAllDocuments(text, { merge: true })
    return { path, documents: (Array.isArray(documents) ? documents : []).flatMap((one) => itemsOf(one as Document)) }
  })
  const all = read.flatMap(({ documents }) => documents)
  const renameServices = serviceRenamer(
    all.map((one) => ({ kind: String(one.get('kind')), name: String(one.getIn(['metadata', 'name'])) })),
    ownedName,
  )
  const servers = new Set(all.filter(isAuthServer).map((one) => idOf(one)))
  const logsIn = (document: Document, config: string): boolean | undefined => {
    const id = idOf(document, config)
    return servers.has(id) ? true : all.some((one) => idOf(one) === id) ? false : undefined
  }
  const files = read.map(({ path, documents }) => {
    const parts = documents.flatMap((document) => convertOne(document, path, { refused, renameServices, logsIn }))
    return { path, text: parts.join('---\n') }
  })
  refused.push(...problemsOf(files).map((problem) => ({ where: placeOf(problem), what: problem.message })))
  return {
    output: files
      .map(({ text }) => text)
      .filter((text) => text !== '')
      .join('---\n'),
    refused,
  }
}

/** The documents of a list (`kubectl get -o yaml`); any other document is its own. */
function itemsOf(document: Document): Document[] {
  const items = document.get('items')
  if (!String(document.get('kind')).endsWith('List') || !isSeq(items)) return [document]
  return items.items.filter(isMap).map((item) => {
    // Users write neither server metadata nor status.
    const { status, metadata, ...written } = item.toJS(document, { maxAliasCount: UNBOUNDED }) as {
      readonly status?: { readonly discoveredBackends?: unknown }
      readonly metadata?: Readonly<Record<string, unknown>>
      readonly [field: string]: unknown
    }
    const { name, namespace, labels } = metadata ?? {}
    const backends = status?.discoveredBackends
    return new Document(
      JSON.parse(
        JSON.stringify({
          ...written,
          metadata: { name, namespace, labels },
          ...(backends === undefined ? {} : { status: { discoveredBackends: backends } }),
        }),
      ),
      WRITTEN_YAML,
    )
  })
}

/**
 * Expands aliases and merge keys, so that a change affects one location only. Documents without them keep comments and
 * format.
 */
function writtenOut(document: Document): Document {
  let isShared = false
  const found = (): symbol => {
    isShared = true
    return visit.BREAK
  }
  visit(document, {
    Alias: found,
    Pair: (_at, { key }) =>
      isScalar(key) && (key.value === '<<' || typeof key.value === 'symbol') ? found() : undefined,
  })
  if (!isShared) return document
  const whole = new Document(JSON.parse(JSON.stringify(document.toJS({ maxAliasCount: UNBOUNDED }))), WRITTEN_YAML)
  whole.commentBefore = document.commentBefore
  return whole
}

const idOf = (document: Document, name: unknown = document.getIn(['metadata', 'name'])): string => {
  const namespace: unknown = document.getIn(['metadata', 'namespace'])
  return JSON.stringify([namespace ?? DEFAULT_NAMESPACE, name])
}

const isAuthServer = (document: Document): boolean =>
  document.get('kind') === 'MCPExternalAuthConfig' && document.getIn(['spec', 'type']) === 'embeddedAuthServer'

interface Conversion {
  readonly refused: Converted['refused'][number][]
  readonly renameServices: (document: Document) => string[]
  /** Whether callers log in at the config of this name; undefined if it is not in the files. */
  readonly logsIn: (document: Document, config: string) => boolean | undefined
}

function convertOne(original: Document, path: string, conversion: Conversion): string[] {
  const { refused, renameServices, logsIn } = conversion
  const content = original.toJS({ maxAliasCount: UNBOUNDED }) as {
    readonly apiVersion?: unknown
    readonly kind?: unknown
    readonly metadata?: { readonly name?: unknown }
  } | null
  if (content === null || typeof content !== 'object') return []
  const { apiVersion, kind, metadata } = content
  const name = `${String(kind)}/${String(metadata?.name)}`
  const group = String(apiVersion).split('/')[0] ?? ''
  const isTheirs = group !== '' && group.endsWith('.stacklok.dev')
  if (kind === SERVER && isTheirs) {
    refused.push({ where: `${path}  ${name}`, what: NO_SERVER })
    return [comment([`${name} is omitted: ${NO_SERVER}`])]
  }
  if (!DOCUMENT_KINDS.some((known) => known === kind))
    return isTheirs
      ? [comment([`${name} is omitted: it belongs to another controller`])]
      : [withChanges(original, renameServices(original))]
  if (!isTheirs && group !== DEFAULT_API_GROUP) return [String(original)]
  const document = writtenOut(original)
  const changes = [
    ...rewrite(document, String(kind), (config) => logsIn(document, config)),
    ...renameServices(document),
  ]
  return [withChanges(document, changes)]
}

/** The document as YAML, with a comment for each change. */
function withChanges(document: Document, changes: readonly string[]): string {
  if (changes.length === 0) return String(document)
  const before = document.commentBefore
  document.commentBefore = null
  const head = [...(before ?? '').split('\n').filter((line) => line.trim() !== ''), ...changes.map((one) => ` ${one}`)]
  return `${head.map((line) => `#${line}\n`).join('')}${document.toString({ lineWidth: WRITTEN_YAML.lineWidth, directives: false })}`
}

const comment = (lines: readonly string[]): string => lines.map((line) => `# ${line}\n`).join('')

/** Problems that a proxy reports for the documents, namespace by namespace. */
function problemsOf(files: readonly Text[]): readonly Problem[] {
  const loaded = parseDocuments(files)
  const namespaces = new Set(loaded.workloads.map(({ document }) => document.metadata.namespace))
  const ofRoutes = [...namespaces].flatMap((namespace) => resolveProxy(loaded, { namespace }).problems ?? [])
  const all = [...loaded.problems, ...ofRoutes.filter(({ kind }) => kind !== '')]
  return [...new Map(all.map((problem) => [`${placeOf(problem)} ${problem.message}`, problem])).values()]
}

const placeOf = ({ file, kind, name, path }: Problem): string =>
  `${file}  ${kind === '' ? '' : `${kind}/${name}  `}${path}`.trimEnd()
