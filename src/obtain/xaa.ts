import {
  type AuthenticatedCaller,
  type Credential,
  type MonotonicMs,
  onBehalfOf,
  type OutboundResponse,
  Secret,
} from '../core/index.ts'
import { outboundFailure } from '../net/index.ts'
import {
  clientAuthOf,
  JWT_BEARER,
  tokenTypeUrn,
  xaaEndpoints,
  type ResolvedAuthOf,
  type Xaa,
} from '../resources/index.ts'
import { errorOf } from '../oauth/index.ts'
import { createCachedSource } from './cached.ts'
import type { ObtainDeps } from './deps.ts'
import { checkIdTokenClaims, checkIdTokenHeader, ID_JAG_TYPE, readAssertion, readGrantedToken } from './id-jag.ts'
import type { Fetched, FetchingSource, Plan, Source } from './source.ts'
import { createTokenClient, createTokenLog, TOKEN_DEADLINE_MS } from './token-client.ts'
import { TOKEN_EXCHANGE_GRANT } from './token-exchange.ts'
import { createTokenAges, TOKEN_ENDPOINT } from './token-exchange-response.ts'
import { createSubjectTokenSource, type SubjectToken } from './subject-token-source.ts'

type XaaAuth = Pick<ResolvedAuthOf<'xaa'>, 'name' | 'namespace' | 'type' | 'configHash' | 'spec' | 'upstream'>

/**
 * An assertion is used until this long before expiry, or half of a shorter lifetime, to allow for latency and clock
 * skew.
 */
const ASSERTION_MARGIN_MS = 10_000
const LEAST_USE_MS = 1_000

/** The two endpoints' names in log, `check` and requests. */
const ENDPOINTS = {
  idp: { ...TOKEN_ENDPOINT, what: 'token endpoint of the identity provider' },
  target: { ...TOKEN_ENDPOINT, what: 'token endpoint of the target' },
}

/** The parameter of the second request's form for the assertion, which is never sent in a header. */
const ASSERTION = 'assertion'

/** RFC 6749 §5.2. */
const isRefusedGrant = (response: OutboundResponse): boolean =>
  response.status === 400 && errorOf(response) === 'invalid_grant'

/** The fields of the first form that are the same for all callers. */
function assertionForm({ targetAudience, targetResource, scopes = [], subjectTokenType }: Xaa) {
  return [
    ['grant_type', TOKEN_EXCHANGE_GRANT],
    ['requested_token_type', ID_JAG_TYPE],
    ['audience', targetAudience],
    ...(targetResource === undefined ? [] : [['resource', targetResource] as const]),
    ...(scopes.length === 0 ? [] : [['scope', scopes.join(' ')] as const]),
    ['subject_token_type', tokenTypeUrn(subjectTokenType)],
  ] as const
}

/**
 * Type `xaa` (decisions §3.11): the caller's ID token is shown to the identity provider, which gives an identity assertion for
 * the target's authorization server; that one gives an access token for it, which goes as `Bearer …` into `Authorization`. Both are kept apart in the one cache. Throws `type_not_runnable` at load for an
 * upstream without an embedded authorization server; `obtain` throws what `tokenExchange` throws, `no_id_token` for callers whose
 * own token is none, and `insufficient_user_authentication`.
 */
export function createXaaSource(auth: XaaAuth, deps: ObtainDeps): Source {
  const { name, spec } = auth
  const { clock, log } = deps
  const { idp, target } = xaaEndpoints(spec)
  const clients = { idp: createTokenClient(name, idp, deps), target: createTokenClient(name, target, deps) }
  const logged = {
    idp: createTokenLog('identity assertion', name, clients.idp, log),
    target: createTokenLog('token for an identity assertion', name, clients.target, log),
  }
  const subject = createSubjectTokenSource({ named: spec.subjectProviderName, upstream: auth.upstream }, deps)
  const idpClientId = clientAuthOf(idp)?.clientId
  const wanted = {
    audience: spec.targetAudience,
    clientId: clientAuthOf(target)?.clientId,
    resource: spec.targetResource,
  }
  const issuedAt = createTokenAges(clock)
  const form = assertionForm(spec)
  const scope = (spec.accessTokenScopes ?? []).join(' ')

  /** Logs the failure of an outgoing call once, for its step. */
  const attempt = async <T>(server: keyof typeof clients, call: () => T | Promise<T>): Promise<T> => {
    try {
      return await call()
    } catch (error) {
      const failure = outboundFailure(error, ENDPOINTS[server])
      logged[server](failure)
      throw failure
    }
  }

  const ask = (caller: AuthenticatedCaller, shown: SubjectToken, endsAtMs: MonotonicMs): Promise<Fetched> =>
    attempt('idp', async () => {
      const issuedAtMs = issuedAt(shown)
      // Lifetimes count from the request, to include the response's latency.
      const sentAtMs = clock.now()
      const response = await clients.idp.post({
        form: [...form, ['subject_token', shown.token.reveal()]],
        onBehalfOf: onBehalfOf(caller),
        endsAtMs,
      })
      const nowMs = clock.now()
      const asked = { url: idp.tokenUrl, requestedType: ID_JAG_TYPE, service: ENDPOINTS.idp }
      const { token, expiresAtMs } = readAssertion(response, { ...asked, sentAtMs, nowMs, issuedAtMs }, wanted)
      const marginMs = Math.min(ASSERTION_MARGIN_MS, (expiresAtMs - nowMs) / 2)
      const endMs = Math.min(expiresAtMs - marginMs, shown.expiresAtMs)
      // A shorter-lived one serves only the waiting call.
      return {
        credential: { kind: 'header', name: ASSERTION, value: token },
        expiresAtMs: Math.max(endMs, nowMs + LEAST_USE_MS),
      }
    })

  const present = (caller: AuthenticatedCaller, assertion: Credential, endsAtMs: MonotonicMs) =>
    attempt('target', async () => {
      const sentAtMs = clock.now()
      const response = await clients.target.post({
        form: [
          ['grant_type', JWT_BEARER],
          [ASSERTION, assertion.kind === 'header' ? assertion.value.reveal() : ''],
          ...(scope === '' ? [] : [['scope', scope] as const]),
        ],
        onBehalfOf: onBehalfOf(caller),
        endsAtMs,
      })
      return { response, sentAtMs }
    })

  const planFor =
    (server: string) =>
    (caller: AuthenticatedCaller): Plan => {
      const session = subject.keyParts(caller)
      if (session.length > 0) return { keyParts: [server, ...session], notAfterMs: caller.expiresAtMs }
      checkIdTokenClaims(caller, idpClientId)
      return { keyParts: [server, caller.tokenDigest], notAfterMs: caller.expiresAtMs }
    }

  const common = {
    // A change of the secrets of either step invalidates both.
    secrets: [...clients.idp.secrets, ...clients.target.secrets],
    isKeyedByToken: auth.upstream === undefined,
  }
  const assertions = createCachedSource(
    auth,
    {
      ...common,
      plan: planFor('assertion'),
      deadlineMs: TOKEN_DEADLINE_MS,
      async fetch(caller, _plan, endsAtMs, token) {
        if (subject.keyParts(caller).length === 0) checkIdTokenHeader(token)
        return subject.show(caller, token, endsAtMs, (shown) => ask(caller, shown, endsAtMs))
      },
      onRecovered: (listener) => clients.idp.onRecovered(listener),
      close: () => clients.idp.close(),
    } satisfies FetchingSource,
    deps,
  )
  const tokens = createCachedSource(
    auth,
    {
      ...common,
      plan: planFor('token'),
      deadlineMs: 2 * TOKEN_DEADLINE_MS,
      async fetch(caller, _plan, endsAtMs, token) {
        const obtain = async () => assertions.obtain(caller, () => token)
        const assertion = await obtain()
        let shown = await present(caller, assertion, endsAtMs)
        // It may have expired in transit, or its key was changed: retry once with a new one.
        if (isRefusedGrant(shown.response) && (await assertions.reject(caller, assertion)))
          shown = await present(caller, await obtain(), endsAtMs)
        const { response, sentAtMs } = shown
        return attempt('target', () => {
          const given = readGrantedToken(response, {
            url: target.tokenUrl,
            service: ENDPOINTS.target,
            sentAtMs,
            nowMs: clock.now(),
          })
          const value = new Secret(`Bearer ${given.token.reveal()}`)
          return { credential: { kind: 'header', name: 'authorization', value }, expiresAtMs: given.expiresAtMs }
        })
      },
      onRecovered: (listener) => clients.target.onRecovered(listener),
      close: () => clients.target.close(),
    } satisfies FetchingSource,
    deps,
  )
  return { ...tokens, close: async () => void (await Promise.all([tokens.close?.(), assertions.close?.()])) }
}
