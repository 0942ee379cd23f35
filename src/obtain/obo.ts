import { type AuthenticatedCaller, type Claims, Failure, type MonotonicMs, onBehalfOf, Secret } from '../core/index.ts'
import { outboundFailure } from '../net/index.ts'
import { oboClient, oboEndpoints, oboScope, type ResolvedAuthOf } from '../resources/index.ts'
import type { ObtainDeps } from './deps.ts'
import { oboGrant } from './obo-refusals.ts'
import type { Fetched, FetchingSource, Plan } from './source.ts'
import { createTokenClient, createTokenLog, TOKEN_DEADLINE_MS } from './token-client.ts'
import { readBearerToken, TOKEN_ENDPOINT, usedUntilMs } from './token-exchange-response.ts'
import { createSubjectTokenSource, type SubjectToken } from './subject-token-source.ts'

export type OboAuth = Pick<ResolvedAuthOf<'obo'>, 'name' | 'spec' | 'upstream'>

const GRANT_TYPE = 'urn:ietf:params:oauth:grant-type:jwt-bearer'

/** Rejects application tokens, which have no delegated permissions (`scp`). Throws `not_a_user_token`. */
export function refuseApplication({ idtyp, scp }: Claims): void {
  if (idtyp === 'app') throw new Failure('not_a_user_token', { detail: 'the token belongs to an application (idtyp)' })
  if (typeof scp !== 'string' || scp === '')
    throw new Failure('not_a_user_token', { detail: 'the token has no delegated permission (scp)' })
}

/**
 * Type `obo` (on-behalf-of flow of Microsoft Entra ID, decisions §3.10): shows the caller's token, or the one that an upstream
 * provider gave for this caller, as an assertion (RFC 7523 §2.1) and gets one for the backend, which goes as `Bearer …` into
 * `Authorization`. `plan` throws `not_a_user_token`; `fetch` throws `interaction_required`, `invalid_token`, `no_session`,
 * `exchange_denied`, `not_a_user_token`, `config_error`, `secret_unavailable`, `identity_provider_unavailable` and
 * `exchange_failed`.
 */
export function createOboSource(auth: OboAuth, deps: ObtainDeps): FetchingSource {
  const { name, spec } = auth
  const { clock } = deps
  const endpoints = oboEndpoints(spec)
  const tokenUrl = endpoints.token
  const client = createTokenClient(name, { ...oboClient(spec), tokenUrl, caCertPath: spec.caCertPath }, deps)
  const subject = createSubjectTokenSource({ named: spec.subjectTokenProviderName, upstream: auth.upstream }, deps)
  const scope = oboScope(spec)
  const clientId = oboClient(spec).clientId ?? oboClient(spec).clientAuth?.clientId ?? ''
  const form = [
    ['grant_type', GRANT_TYPE],
    ['scope', scope],
    ['requested_token_use', 'on_behalf_of'],
  ] as const
  const asked = {
    scope,
    authorizationUri: endpoints.authorize,
    consentUrl: `${endpoints.consent}?client_id=${encodeURIComponent(clientId)}`,
  }
  const grant = oboGrant(asked)
  const logFailure = createTokenLog('on-behalf-of request', name, client, deps.log)

  const fetch = async (caller: AuthenticatedCaller, shown: SubjectToken, endsAtMs: MonotonicMs): Promise<Fetched> => {
    try {
      // Lifetimes count from the request, to include the response's latency.
      const sentAtMs = clock.now()
      const response = await client.post({
        form: [...form, ['assertion', shown.token.reveal()]],
        onBehalfOf: onBehalfOf(caller),
        endsAtMs,
      })
      const context = { url: tokenUrl, sentAtMs, nowMs: clock.now() }
      const { token, expiresAtMs } = readBearerToken(response, context, grant)
      return {
        credential: { kind: 'header', name: 'authorization', value: new Secret(`Bearer ${token.reveal()}`) },
        expiresAtMs: Math.min(usedUntilMs(expiresAtMs, sentAtMs, spec.cacheSkew), shown.expiresAtMs),
      }
    } catch (error) {
      const failure = outboundFailure(error, TOKEN_ENDPOINT)
      logFailure(failure)
      throw failure
    }
  }

  return {
    secrets: client.secrets,
    isKeyedByToken: auth.upstream === undefined,
    plan: (caller): Plan => {
      const session = subject.keyParts(caller)
      if (session.length > 0)
        return { keyParts: [spec.tenantId, clientId, scope, ...session], notAfterMs: caller.expiresAtMs }
      refuseApplication(caller.claims)
      return { keyParts: [spec.tenantId, clientId, scope, caller.tokenDigest], notAfterMs: caller.expiresAtMs }
    },
    deadlineMs: TOKEN_DEADLINE_MS,
    fetch: (caller, _plan, endsAtMs, token) =>
      subject.show(caller, token, endsAtMs, (shown) => fetch(caller, shown, endsAtMs)),
    onRecovered: (listener) => client.onRecovered(listener),
    close: () => client.close(),
  }
}
