import { Secret } from '../core/index.ts'
import { outboundFailure } from '../net/index.ts'
import { ownTokenFailure } from '../oauth/index.ts'
import type { ClientCredentials, ResolvedAuthOf } from '../resources/index.ts'
import type { ObtainDeps } from './deps.ts'
import type { OwnSource } from './source.ts'
import { createTokenClient, createTokenLog, TOKEN_DEADLINE_MS } from './token-client.ts'
import { OWN_TOKEN_ENDPOINT, readBearerToken, usedUntilMs } from './token-exchange-response.ts'

/** The form, which is the same every time. */
function formOf({ scopes = [], audience, resource, additionalParams = {} }: ClientCredentials) {
  return [
    ['grant_type', 'client_credentials'],
    ...(scopes.length === 0 ? [] : [['scope', scopes.join(' ')] as const]),
    ...(audience === undefined ? [] : [['audience', audience] as const]),
    ...(resource === undefined ? [] : [['resource', resource] as const]),
    ...Object.entries(additionalParams),
  ] as const
}

/**
 * Type `clientCredentials` (RFC 6749 §4.4, decisions §3.8): a token of the proxy's own, the same for every caller. It goes as
 * `Bearer …` into `Authorization`, or into `externalTokenHeaderName` where one is set. What the token endpoint refuses is no
 * caller's fault: `fetch` throws `config_error`, `secret_unavailable`, `identity_provider_unavailable` and `exchange_failed`.
 */
export function createClientCredentialsSource(
  { name, spec }: Pick<ResolvedAuthOf<'clientCredentials'>, 'name' | 'spec'>,
  deps: ObtainDeps,
): OwnSource {
  const { clock } = deps
  const tokenUrl = spec.tokenUrl ?? spec.issuerUrl ?? ''
  const client = createTokenClient(name, spec, deps)
  const form = formOf(spec)
  const header = spec.externalTokenHeaderName?.toLowerCase() ?? 'authorization'
  const logFailure = createTokenLog('token request', name, tokenUrl, deps.log)

  return {
    secrets: client.secrets,
    deadlineMs: TOKEN_DEADLINE_MS,
    async fetch(endsAtMs) {
      try {
        // The lifetime counts from here: the answer's way back is part of it.
        const sentAtMs = clock.now()
        const response = await client.post({ form, endsAtMs })
        const context = { tokenUrl, sentAtMs, nowMs: clock.now(), service: OWN_TOKEN_ENDPOINT }
        const { token, expiresAtMs } = readBearerToken(response, context, ownTokenFailure)
        return {
          credential: { kind: 'header', name: header, value: new Secret(`Bearer ${token.reveal()}`) },
          expiresAtMs: usedUntilMs(expiresAtMs, sentAtMs, spec.cacheSkew),
        }
      } catch (error) {
        const failure = outboundFailure(error, OWN_TOKEN_ENDPOINT)
        logFailure(failure)
        throw failure
      }
    },
    onRecovered: (listener) => client.onRecovered(listener),
    close: () => client.close(),
  }
}
