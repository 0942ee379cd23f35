import { configHash } from './config-hash.ts'
import {
  TYPE_RECORDS,
  typedSpec,
  upstreamProviderOf,
  urlsCalledBy,
  type AuthType,
  type RunnableType,
} from './auth-types.ts'
import { anchorSpec } from './file-paths.ts'
import type { LocatedAuth } from './loaded.ts'
import type { ResolvedAuth } from './resolved.ts'
import { judgeCalledUrl, refusedHttpMessage } from './warnings.ts'

/** What a route gets for the MCPExternalAuthConfig it names, or why it can't have it. */
export type AuthResult =
  { readonly auth: ResolvedAuth } | { readonly message: string; readonly reason: 'config_error' | 'type_not_runnable' }

/** The config as sources take it: the sub-object of its type, with absolute paths. */
export function resolveAuth(located: LocatedAuth): AuthResult {
  const { metadata, spec } = located.document
  const label = `MCPExternalAuthConfig "${metadata.name}" (${located.file}:${located.line})`
  const typed = anchorSpec(typedSpec(spec), located.file)
  if (!isRunnable(typed.type))
    return notRunnable(`${label} has type "${typed.type}", which this version loads but can not run yet`)
  if (upstreamProviderOf(typed) !== undefined) {
    return notRunnable(
      `${label} uses the token of an upstream provider, which only the embedded authorization server holds; this version can not run it yet`,
    )
  }
  const refused = urlsCalledBy(typed).find((called) => judgeCalledUrl(called) === 'refuse')
  if (refused !== undefined) {
    return {
      message: `${label}, "${refused.path.join('.')}": ${refusedHttpMessage(refused)}`,
      reason: 'config_error',
    }
  }
  return {
    // `spec` is the one that belongs to `type`; TypeScript can't follow one key through two unions.
    auth: {
      name: metadata.name,
      namespace: metadata.namespace,
      ...typed,
      configHash: located.configHash,
      source: { file: located.file, line: located.line },
    } as ResolvedAuth,
  }
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

const isRunnable = (type: AuthType): type is RunnableType => TYPE_RECORDS[type].runsOn === 'route'

const notRunnable = (message: string): AuthResult => ({ message, reason: 'type_not_runnable' })
