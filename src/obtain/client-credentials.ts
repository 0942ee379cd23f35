import { type Credential, Secret } from '../core/index.ts'
import { outboundFailure, type ServiceFailures } from '../net/index.ts'
import { OWN_GRANT } from '../oauth/index.ts'
import type { ClientCredentialsGrant, ResolvedAuthOf } from '../resources/index.ts'
import type { ObtainDeps } from './deps.ts'
import type { OwnSource } from './source.ts'
import { createTokenClient, createTokenLog, TOKEN_DEADLINE_MS } from './token-client.ts'
import { OWN_TOKEN_ENDPOINT, readBearerToken, usedUntilMs } from './token-exchange-response.ts'

/** The use of a token of the proxy itself. */
export interface OwnTokenUse {
  /** Name of the config. */
  readonly name: string
  /** The request's name in the log, such as `token request`. */
  readonly what: string
  readonly service: ServiceFailures
  /** Converts the token to a credential. */
  readonly credential: (token: Secret) => Credential
}

/** The form, which never changes. */
function formOf({ scopes = [], audience, resource, additionalParams = {} }: ClientCredentialsGrant) {
  return [
    ['grant_type', 'client_credentials'],
    ...(scopes.length === 0 ? [] : [['scope', scopes.join(' ')] as const]),
    ...(audience === undefined ? [] : [['audience', audience] as const]),
    ...(resource === undefined ? [] : [['resource', resource] as const]),
    ...Object.entries(additionalParams),
  ] as const
}

/**
 * A token that the proxy obtains for itself (RFC 6749 §4.4). Rejections are not the caller's fault: `fetch` throws
 * `config_error`, `secret_unavailable`, `identity_provider_unavailable` and `exchange_failed`.
 */
export function createOwnTokenSource(
  spec: ClientCredentialsGrant,
  { name, what, service, credential }: OwnTokenUse,
  deps: ObtainDeps,
): OwnSource {
  const { clock } = deps
  const client = createTokenClient(name, spec, deps)
  const form = formOf(spec)
  const logFailure = createTokenLog(what, name, client, deps.log)

  return {
    secrets: client.secrets,
    deadlineMs: TOKEN_DEADLINE_MS,
    async fetch(endsAtMs) {
      try {
        // Lifetimes count from the request, to include the response's latency.
        const sentAtMs = clock.now()
        const response = await client.post({ form, endsAtMs })
        const context = { url: client.url, sentAtMs, nowMs: clock.now(), service }
        const { token, expiresAtMs } = readBearerToken(response, context, OWN_GRANT)
        return { credential: credential(token), expiresAtMs: usedUntilMs(expiresAtMs, sentAtMs, spec.cacheSkew) }
      } catch (error) {
        const failure = outboundFailure(error, service)
        logFailure(failure)
        throw failure
      }
    },
    onRecovered: (listener) => client.onRecovered(listener),
    close: () => client.close(),
  }
}

/**
 * Type `clientCredentials` (RFC 6749 §4.4, decisions §3.8): a token of the proxy itself, the same for all callers.
 * Sent as `Bearer …` in `Authorization`, or in `externalTokenHeaderName`.
 */
export function createClientCredentialsSource(
  { name, spec }: Pick<ResolvedAuthOf<'clientCredentials'>, 'name' | 'spec'>,
  deps: ObtainDeps,
): OwnSource {
  const header = spec.externalTokenHeaderName?.toLowerCase() ?? 'authorization'
  const use: OwnTokenUse = {
    name,
    what: 'token request',
    service: OWN_TOKEN_ENDPOINT,
    credential: (token) => ({ kind: 'header', name: header, value: new Secret(`Bearer ${token.reveal()}`) }),
  }
  return createOwnTokenSource(spec, use, deps)
}
