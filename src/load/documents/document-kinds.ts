import { nearest } from '../../core/index.ts'
import { WORKLOAD_KINDS } from '../../resources/index.ts'

/** API group of the resources unless `--api-group` overrides it (decisions §1). */
export const DEFAULT_API_GROUP = 'extauth.dev'

/** The versions of a group, oldest first; both have the same schema. */
export const API_VERSIONS = ['v1alpha1', 'v1beta1'] as const
/**
 * The version that every release of the definitions serves. The operator and its webhooks use it, so both work with
 * the definitions of the previous and the next release.
 */
export const OLDEST_VERSION = API_VERSIONS[0]
/** The version that a cluster stores. */
export const NEWEST_VERSION = 'v1beta1' satisfies (typeof API_VERSIONS)[number]
/** Other groups whose kinds load without changes to the files. */
const ALSO_LOADED: readonly string[] = ['toolhive.stacklok.dev']

/** Every supported kind. */
export const DOCUMENT_KINDS = [
  'MCPExternalAuthConfig',
  'MCPOIDCConfig',
  'MCPTelemetryConfig',
  'MCPToolConfig',
  'ProxyConfig',
  'RoleTest',
  ...WORKLOAD_KINDS,
] as const
export type DocumentKind = (typeof DOCUMENT_KINDS)[number]

/** Kinds of other groups that are skipped; the support of fields that refer to them is listed per field. */
const UNSUPPORTED_KINDS: ReadonlySet<string> = new Set([
  'EmbeddingServer',
  'MCPAuthzConfig',
  'MCPGroup',
  'MCPRegistry',
  'MCPWebhookConfig',
  'VirtualMCPCompositeToolDefinition',
])

export type Classified =
  /** `isForeign`: written for another group, where absent fields may have different defaults. */
  | { readonly is: 'recognized'; readonly kind: DocumentKind; readonly isForeign: boolean }
  /** An unsupported document; `warning` if it looks like a misspelled supported one. */
  | { readonly is: 'foreign'; readonly kind: string; readonly warning: string | undefined }
  | { readonly is: 'registry' | 'callers' }
  | { readonly is: 'list'; readonly items: readonly unknown[] }
  | { readonly is: 'wrong'; readonly path: readonly string[]; readonly message: string }

/** Classifies a document by `apiVersion` and `kind`; the registry file has neither. */
export function classifyDocument(value: Readonly<Record<string, unknown>>, apiGroup: string): Classified {
  const { apiVersion, kind } = value
  if (apiVersion === undefined && kind === undefined) return classifyPlain(value)
  const isOurKind = isKnown(kind)
  if (typeof apiVersion !== 'string' || typeof kind !== 'string') {
    const missing = typeof apiVersion === 'string' ? 'kind' : 'apiVersion'
    if (!isOurKind && typeof kind === 'string') return { is: 'foreign', kind: kind.slice(0, 64), warning: undefined }
    return {
      is: 'wrong',
      path: [missing],
      message:
        missing === 'kind'
          ? `missing, expected one of ${DOCUMENT_KINDS.join(', ')}`
          : `missing, expected "${apiGroup}/${NEWEST_VERSION}"`,
    }
  }
  const [group = '', version = ''] = apiVersion.split('/', 2)
  const isOurGroup = group === apiGroup || group === DEFAULT_API_GROUP
  const isRead = isOurGroup || ALSO_LOADED.includes(group)
  const isList =
    kind === 'List' ? apiVersion === 'v1' : isRead && DOCUMENT_KINDS.some((known) => kind === `${known}List`)
  if (isList && Array.isArray(value.items)) return { is: 'list', items: value.items }
  if (!isRead) {
    const message = isOurKind ? misspelled(apiVersion, apiGroup) : undefined
    if (message !== undefined) return { is: 'wrong', path: ['apiVersion'], message }
    const warning = isOurKind
      ? `skipped, "${kind}" of the group "${group.slice(0, 64)}" is not supported, expected "${apiGroup}/${NEWEST_VERSION}"`
      : undefined
    return { is: 'foreign', kind, warning }
  }
  if (isOurKind) {
    if (API_VERSIONS.some((known) => known === version))
      return { is: 'recognized', kind, isForeign: ALSO_LOADED.includes(group) }
    return {
      is: 'wrong',
      path: ['apiVersion'],
      message: `unknown version, expected ${API_VERSIONS.map((known) => `"${group}/${known}"`).join(' or ')}`,
    }
  }
  if (!isOurGroup && UNSUPPORTED_KINDS.has(kind)) return { is: 'foreign', kind, warning: undefined }
  const meant = nearest(kind, DOCUMENT_KINDS)
  if (meant !== undefined)
    return { is: 'wrong', path: ['kind'], message: `"${kind}" is not known, did you mean "${meant}"?` }
  if (isOurGroup) {
    return {
      is: 'wrong',
      path: ['kind'],
      message: `"${kind.slice(0, 64)}" is not known, expected one of ${DOCUMENT_KINDS.join(', ')}`,
    }
  }
  return { is: 'foreign', kind, warning: undefined }
}

/** Describes an `apiVersion` that can only be a mistake: without a group, or close to a supported one. */
function misspelled(apiVersion: string, apiGroup: string): string | undefined {
  const [group = '', ...version] = apiVersion.split('/')
  if (version.length === 0 || group.trim() === '') return `has no group, expected "${apiGroup}/${NEWEST_VERSION}"`
  const meant = nearest(group, [apiGroup, DEFAULT_API_GROUP, ...ALSO_LOADED])
  return meant && `the group "${group}" is not known, did you mean "${meant}"?`
}

const isKnown = (kind: unknown): kind is DocumentKind => DOCUMENT_KINDS.some((known) => known === kind)

const SECTION_KEYS: ReadonlySet<string> = new Set(['mode', 'oauth', 'publicPaths'])

/** Documents without apiVersion and kind: the registry file, a separate `auth` section, or unsupported content. */
function classifyPlain(value: Readonly<Record<string, unknown>>): Classified {
  const keys = Object.keys(value)
  if (keys.includes('registries')) return { is: 'registry' }
  if (keys.includes('auth')) return { is: keys.length === 1 ? 'callers' : 'registry' }
  // A section without the outer key, as `--callers` accepts it.
  if (keys.includes('oauth') && keys.every((key) => SECTION_KEYS.has(key))) return { is: 'callers' }
  if (keys.length === 1 && value.mode === 'anonymous') return { is: 'callers' }
  return { is: 'foreign', kind: '', warning: undefined }
}
