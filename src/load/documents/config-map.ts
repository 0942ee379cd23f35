import { classifyDocument } from './document-kinds.ts'
import { isRecord } from '../../fields/index.ts'
import { moved, readYaml, type TextDocument, type TextProblem } from '../yaml/yaml.ts'
import { isExhausted, type Budget } from '../yaml/yaml-limits.ts'

/** A document in the data of a ConfigMap; its locations are those in the enclosing file. */
export interface ContainedText {
  /** The key of `data`. */
  readonly key: string
  readonly documents: readonly TextDocument[]
  readonly problems: readonly TextProblem[]
}

/** Whether an object is a ConfigMap, whose data may contain documents. */
export const isConfigMap = ({ apiVersion, kind }: Readonly<Record<string, unknown>>): boolean =>
  apiVersion === 'v1' && kind === 'ConfigMap'

/**
 * The recognized documents in a ConfigMap, by key of its `data`. Other texts are skipped, even invalid ones, unless
 * they name a supported group. `prefix` is the path of the ConfigMap in `text`.
 */
export function textsIn(
  value: Readonly<Record<string, unknown>>,
  text: TextDocument,
  prefix: readonly PropertyKey[],
  { apiGroup, budget }: { readonly apiGroup: string; readonly budget: Budget },
): ContainedText[] {
  const { data } = value
  if (!isRecord(data)) return []
  const texts: ContainedText[] = []
  for (const [key, content] of Object.entries(data)) {
    if (typeof content !== 'string') continue
    const isNamed = namesGroup(content, apiGroup)
    if (!isNamed && !PLAIN.test(content)) continue
    const at = [...prefix, 'data', key]
    const inner = readYaml(content, budget)
    const documents = inner.documents.filter((document) => isOurs(document.value, apiGroup))
    const problems = isNamed ? inner.problems : []
    if (documents.length === 0 && problems.length === 0) continue
    texts.push({
      key,
      documents: documents.map((document) => within(document, text, at)),
      problems: problems.map((problem) => moved(problem, text.placeWithin(at, problem))),
    })
    // Each further text would cost parsing time and repeat the same problem.
    if (isNamed && isExhausted(budget)) break
  }
  return texts
}

/** The groups whose documents load regardless of `--api-group`. */
const GROUPS = ['extauth.dev', 'toolhive.stacklok.dev']

const namesGroup = (text: string, apiGroup: string): boolean =>
  [apiGroup, ...GROUPS].some((group) => text.includes(`${group}/`))

/** First keys of documents without a group: the registry file and `auth` sections. */
const PLAIN = /(^|[{,\s])["']?(auth|registries)["']?[ \t]*:/

function isOurs(value: unknown, apiGroup: string): boolean {
  if (!isRecord(value)) return false
  switch (classifyDocument(value, apiGroup).is) {
    case 'registry':
      return Array.isArray(value.registries)
    case 'callers':
      return isRecord(value.auth) && ('mode' in value.auth || 'oauth' in value.auth)
    case 'foreign':
      return false
    default:
      return true
  }
}

/** A document embedded in `outer` at `at`, with locations in the outer text. */
function within(document: TextDocument, outer: TextDocument, at: readonly PropertyKey[]): TextDocument {
  return {
    value: document.value,
    start: outer.placeWithin(at, document.start),
    warnings: document.warnings.map((warning) => moved(warning, outer.placeWithin(at, warning))),
    locate: (path, what) => outer.placeWithin(at, document.locate(path, what)),
    placeWithin: (path, inner) => outer.placeWithin(at, document.placeWithin(path, inner)),
  }
}
