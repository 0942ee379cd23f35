import { Document, isMap, isScalar, isSeq, parseAllDocuments, visit } from 'yaml'
import {
  DEFAULT_API_GROUP,
  OUR_KINDS,
  parseDocuments,
  type Problem,
  resolveProxy,
  WRITTEN_YAML,
} from '../../load/index.ts'
import { DEFAULT_NAMESPACE } from '../../fields/index.ts'
import { ownedName } from '../../operator/index.ts'
import { rewrite } from './rewrite.ts'
import { serviceRenamer } from './services.ts'

/** One file as text. */
interface Text {
  readonly path: string
  readonly text: string
}

/** What became of manifests. */
export interface Converted {
  /** Documents of ours as YAML, each with what was changed as comments above it. */
  readonly output: string
  /** What did something there and does not here, with what to do. */
  readonly refused: readonly { readonly where: string; readonly what: string }[]
}

/** Of aliases: the reader before has counted what they stand for. */
const UNBOUNDED = -1

/** Kinds whose documents are of no use without the controller that they were written for. */
const SERVER = 'MCPServer'
const NO_SERVER =
  'nothing here runs servers: leave it with the controller that does, and put the proxy before it as a sidecar, or as an MCPRemoteProxy whose remoteUrl is its Service'

/**
 * Manifests of other groups as documents of ours. The texts have been read by `parseDocuments` before, whose bounds hold for
 * them. Nothing is left out that restricts callers, tools or traffic: what can't be kept is in `refused` and in the output.
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

/** The documents that a list holds, as `kubectl get -o yaml` prints them; any other is one itself. */
function itemsOf(document: Document): Document[] {
  const items = document.get('items')
  if (!String(document.get('kind')).endsWith('List') || !isSeq(items)) return [document]
  return items.items.filter(isMap).map((item) => {
    // Metadata of the server and status are not what people wrote.
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
 * The document with everything in its place: a field that an alias or a merge key leads to is looked for where it is meant,
 * and changed there alone. What has neither keeps its comments and its form.
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

/** Namespace and name of a config. */
const idOf = (document: Document, name: unknown = document.getIn(['metadata', 'name'])): string => {
  const namespace: unknown = document.getIn(['metadata', 'namespace'])
  return JSON.stringify([namespace ?? DEFAULT_NAMESPACE, name])
}

const isAuthServer = (document: Document): boolean =>
  document.get('kind') === 'MCPExternalAuthConfig' && document.getIn(['spec', 'type']) === 'embeddedAuthServer'

interface Conversion {
  readonly refused: Converted['refused'][number][]
  readonly renameServices: (document: Document) => string[]
  /** Whether callers log in at a config of this name; undefined where it is not among the files. */
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
    return [comment([`${name} is left out: ${NO_SERVER}`])]
  }
  if (!OUR_KINDS.some((known) => known === kind))
    return isTheirs
      ? [comment([`${name} is left out: it belongs to another controller`])]
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

/** What a proxy would refuse of the documents, one namespace after the other. */
function problemsOf(files: readonly Text[]): readonly Problem[] {
  const loaded = parseDocuments(files)
  const namespaces = new Set(loaded.workloads.map(({ document }) => document.metadata.namespace))
  const ofRoutes = [...namespaces].flatMap((namespace) => resolveProxy(loaded, { namespace }).problems ?? [])
  const all = [...loaded.problems, ...ofRoutes.filter(({ kind }) => kind !== '')]
  return [...new Map(all.map((problem) => [`${placeOf(problem)} ${problem.message}`, problem])).values()]
}

const placeOf = ({ file, kind, name, path }: Problem): string =>
  `${file}  ${kind === '' ? '' : `${kind}/${name}  `}${path}`.trimEnd()
