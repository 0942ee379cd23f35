import { type AuthenticatedCaller, type MonotonicMs, onBehalfOf, type OutboundResponse, Secret } from '../core/index.ts'
import { outboundFailure } from '../net/index.ts'
import { errorOf } from '../oauth/index.ts'
import { tokenTypeUrn, type ResolvedAuthOf, type TokenExchange } from '../resources/index.ts'
import { createActor } from './actor-token.ts'
import type { ObtainDeps } from './deps.ts'
import type { Fetched, FetchingSource, Plan } from './source.ts'
import { createTokenClient, createTokenLog, TOKEN_DEADLINE_MS } from './token-client.ts'
import { createTokenAges, readExchangeResponse, TOKEN_ENDPOINT } from './token-exchange-response.ts'
import { createSubjectTokenSource, type SubjectToken } from './subject-token-source.ts'

export type TokenExchangeAuth = Omit<ResolvedAuthOf<'tokenExchange'>, 'source'>

/** RFC 8693 §2.1. */
export const TOKEN_EXCHANGE_GRANT = 'urn:ietf:params:oauth:grant-type:token-exchange'

/** Errors about the subject or actor token: RFC 8693 §2.2.2, and codes of actual servers. */
const ABOUT_TOKENS: ReadonlySet<string | undefined> = new Set(['invalid_request', 'invalid_grant', 'invalid_token'])
const isAboutTokens = (response: OutboundResponse): boolean =>
  (response.status === 400 || response.status === 401) && ABOUT_TOKENS.has(errorOf(response))

/** The form fields that are the same for all callers. */
function fixedForm(spec: TokenExchange): (readonly [string, string])[] {
  const scope = (spec.scopes ?? []).join(' ')
  return [
    ['grant_type', TOKEN_EXCHANGE_GRANT],
    ['subject_token_type', tokenTypeUrn(spec.subjectTokenType)],
    ['requested_token_type', tokenTypeUrn(spec.requestedTokenType)],
    ['audience', spec.audience],
    ...(scope === '' ? [] : [['scope', scope] as const]),
    ...(spec.resource === undefined ? [] : [['resource', spec.resource] as const]),
  ]
}

/**
 * Type `tokenExchange` (RFC 8693, decisions §3.4): exchanges the caller's token, or the one that an upstream provider gave
 * for this caller, for one that the backend accepts. The new token goes as `Bearer …` into `Authorization`, or into
 * `externalTokenHeaderName` where one is set. Throws `type_not_runnable` at load for an upstream without an embedded
 * authorization server; `fetch` throws `invalid_token`, `no_session`, `exchange_denied`, `config_error`,
 * `secret_unavailable`, `identity_provider_unavailable` and `exchange_failed` (decisions §5).
 */
export function createTokenExchangeSource(auth: TokenExchangeAuth, deps: ObtainDeps): FetchingSource {
  const { name, spec } = auth
  const { clock } = deps
  const client = createTokenClient(name, spec, deps)
  const actorToken = spec.actorTokenSecretRef && deps.secrets.handle(spec.actorTokenSecretRef)
  const actor = createActor(auth, client.secrets, deps)
  const subject = createSubjectTokenSource({ named: spec.subjectProviderName, upstream: auth.upstream }, deps)
  const issuedAt = createTokenAges(clock)
  const form = fixedForm(spec)
  const requestedType = tokenTypeUrn(spec.requestedTokenType)
  const [audience, scope] = [spec.audience, (spec.scopes ?? []).join(' ')]
  const header = spec.externalTokenHeaderName?.toLowerCase() ?? 'authorization'
  const logFailure = createTokenLog('token exchange', name, client, deps.log)

  const actorForm = (fetched: Secret | undefined): (readonly [string, string])[] => {
    const token = fetched ?? actorToken?.current()
    if (token === undefined) return []
    const type = actor?.type ?? tokenTypeUrn(spec.actorTokenType ?? 'access_token')
    return [
      ['actor_token', token.reveal()],
      ['actor_token_type', type],
    ]
  }

  const exchange = async (
    caller: AuthenticatedCaller,
    shown: SubjectToken,
    endsAtMs: MonotonicMs,
  ): Promise<Fetched> => {
    // Outside of the exchange's own failure log: nothing was exchanged yet.
    const acting = actor && (await actor.token())
    const ask = (by: Secret | undefined) =>
      client.post({
        form: [...form, ['subject_token', shown.token.reveal()], ...actorForm(by)],
        onBehalfOf: onBehalfOf(caller),
        endsAtMs,
      })
    const issuedAtMs = issuedAt(shown)
    try {
      // Lifetimes count from the request, to include the response's latency.
      let sentAtMs = clock.now()
      let response = await ask(acting)
      // One error for both tokens, and the caller can't fix the proxy's own.
      const another = acting && isAboutTokens(response) ? await actor?.another(acting) : undefined
      if (another !== undefined) {
        sentAtMs = clock.now()
        response = await ask(another)
      }
      const context = { url: spec.tokenUrl, requestedType, sentAtMs, nowMs: clock.now(), issuedAtMs }
      const exchanged = readExchangeResponse(response, context)
      return {
        credential: { kind: 'header', name: header, value: new Secret(`Bearer ${exchanged.token.reveal()}`) },
        expiresAtMs: Math.min(exchanged.expiresAtMs, shown.expiresAtMs),
      }
    } catch (error) {
      const failure = outboundFailure(error, TOKEN_ENDPOINT)
      logFailure(failure)
      throw failure
    }
  }

  return {
    ...subject.changing,
    secrets: actor?.secrets ?? (actorToken === undefined ? client.secrets : [...client.secrets, actorToken]),
    isKeyedByToken: auth.upstream === undefined,
    // Plain literals: spreads would double the memory per caller.
    plan: (caller): Plan => {
      const session = subject.keyParts(caller)
      const keyParts = session.length === 0 ? [audience, scope, caller.tokenDigest] : [audience, scope, ...session]
      return { keyParts, notAfterMs: caller.expiresAtMs }
    },
    deadlineMs: TOKEN_DEADLINE_MS + (actor?.deadlineMs ?? 0),
    fetch: (caller, _plan, endsAtMs, token) =>
      subject.show(caller, token, endsAtMs, (shown) => exchange(caller, shown, endsAtMs)),
    onRecovered: (listener) => client.onRecovered(listener),
    close: async () => void (await Promise.all([client.close(), actor?.close()])),
  }
}
