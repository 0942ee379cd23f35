import { configHash } from './config-hash.ts'
import {
  RUNNABLE_TYPES,
  type AuthSpecs,
  type AuthType,
  type ExternalAuthSpec,
  type RunnableType,
} from './external-auth.ts'
import { anchorSpec } from './file-paths.ts'
import type { LocatedAuth } from './loaded.ts'
import { judgePlainHttp } from './plain-http.ts'
import type { ResolvedAuth } from './resolved.ts'
import { REFUSED_HTTP } from './warnings.ts'

/** What a route gets for the MCPExternalAuthConfig it names, or why it can't have it. */
export type AuthResult =
  { readonly auth: ResolvedAuth } | { readonly message: string; readonly reason: 'config_error' | 'type_not_runnable' }

/** The config as sources take it: the sub-object of its type, with absolute paths. */
export function resolveAuth(located: LocatedAuth): AuthResult {
  const { metadata, spec: written } = located.document
  const label = `MCPExternalAuthConfig "${metadata.name}" (${located.file}:${located.line})`
  const spec = anchorSpec(written, located.file)
  if (!isRunnable(spec.type))
    return notRunnable(`${label} has type "${spec.type}", which this version loads but can not run yet`)
  if (spec.type === 'tokenExchange') {
    const { subjectProviderName, tokenUrl, insecureAllowHttp } = spec.tokenExchange
    if (subjectProviderName !== undefined) {
      return notRunnable(
        `${label} has "subjectProviderName", whose tokens only the embedded authorization server holds; this version can not run it yet`,
      )
    }
    if (judgePlainHttp(tokenUrl, insecureAllowHttp) === 'refuse') {
      return { message: `${label}, "tokenUrl": ${REFUSED_HTTP}`, reason: 'config_error' }
    }
  }
  if (spec.type === 'cloudSts' && spec.cloudSts.stsEndpoint !== undefined) {
    if (judgePlainHttp(spec.cloudSts.stsEndpoint, false) === 'refuse') {
      return {
        message: `${label}: "stsEndpoint" is plain http beyond loopback and in-cluster names, expected https`,
        reason: 'config_error',
      }
    }
  }
  return {
    auth: {
      name: metadata.name,
      namespace: metadata.namespace,
      type: spec.type,
      spec: subObject(spec),
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

/** The sub-object that `type` names; `{}` for `unauthenticated`, which has none. */
export function subObject(spec: ExternalAuthSpec): AuthSpecs[AuthType] {
  switch (spec.type) {
    case 'tokenExchange':
      return spec.tokenExchange
    case 'headerInjection':
      return spec.headerInjection
    case 'bearerToken':
      return spec.bearerToken
    case 'embeddedAuthServer':
      return spec.embeddedAuthServer
    case 'cloudSts':
      return spec.cloudSts
    case 'upstreamInject':
      return spec.upstreamInject
    default:
      return {}
  }
}

const isRunnable = (type: AuthType): type is RunnableType => RUNNABLE_TYPES.some((runnable) => runnable === type)

const notRunnable = (message: string): AuthResult => ({ message, reason: 'type_not_runnable' })
