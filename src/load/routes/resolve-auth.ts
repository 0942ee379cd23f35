import {
  configHash,
  TYPE_RECORDS,
  typedSpec,
  urlsCalledBy,
  type ExternalAuthSpec,
  type TypedSpec,
  type ResolvedAuth,
} from '../../resources/index.ts'
import { anchorSpec } from './file-paths.ts'
import type { LocatedAuth } from '../documents/loaded.ts'
import { pathText } from '../documents/problem.ts'
import { checkCalledUrl, refusedHttpMessage } from '../documents/warnings.ts'

/** The resolved MCPExternalAuthConfig of a route, or why it cannot be used. */
export type AuthResult =
  { readonly auth: ResolvedAuth } | { readonly message: string; readonly reason: 'config_error' | 'type_not_runnable' }

/** The config as input of sources: the sub-object of its type, with absolute paths. */
export function resolveAuth(located: LocatedAuth): AuthResult {
  const { metadata, spec } = located.document
  const label = labelOf(located)
  const typed = anchorSpec(asRouteType(spec), located.file)
  if (TYPE_RECORDS[typed.type].runsOn !== 'route') {
    return {
      message: `${label} has type "${typed.type}", which this version loads but cannot run yet`,
      reason: 'type_not_runnable',
    }
  }
  const message = httpProblem(label, typed)
  if (message !== undefined) return { message, reason: 'config_error' }
  return {
    // `spec` belongs to `type`; TypeScript cannot correlate one key across two unions.
    auth: {
      name: metadata.name,
      namespace: metadata.namespace,
      ...typed,
      configHash: located.configHash,
      source: { file: located.file, line: located.line },
    } as ResolvedAuth,
  }
}

/** An authorization server as external auth means the token of its first upstream, or none (authserver.md §2.3). */
function asRouteType(spec: ExternalAuthSpec): TypedSpec {
  const typed = typedSpec(spec)
  if (spec.type !== 'embeddedAuthServer') return typed
  const { upstreamProviders, disableUpstreamTokenInjection } = spec.embeddedAuthServer
  if (disableUpstreamTokenInjection === true) return { type: 'unauthenticated', spec: {} }
  const [first] = upstreamProviders
  return { type: 'upstreamInject', spec: { providerName: first?.name ?? '' } }
}

/** `MCPExternalAuthConfig "name" (file:line)`, the prefix of messages about it. */
export const labelOf = ({ document, file, line }: LocatedAuth): string =>
  `MCPExternalAuthConfig "${document.metadata.name}" (${file}:${line})`

/** Why a config cannot run because of a plain-http URL; `label` identifies its owner. */
export function httpProblem(label: string, typed: TypedSpec): string | undefined {
  const refused = urlsCalledBy(typed).find((called) => checkCalledUrl(called) === 'refuse')
  return refused === undefined ? undefined : `${label}, "${pathText(refused.path)}": ${refusedHttpMessage(refused)}`
}

/** A workload without externalAuthConfigRef adds nothing to its requests. */
export function withoutExternalAuth(name: string, namespace: string, source: ResolvedAuth['source']): ResolvedAuth {
  return {
    name,
    namespace,
    type: 'unauthenticated',
    spec: {},
    configHash: configHash({ type: 'unauthenticated' }),
    source,
  }
}
