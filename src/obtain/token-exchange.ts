import {
  type Failure,
  OutboundError,
  onBehalfOf,
  Secret,
  type AuthenticatedCaller,
  type OutboundResponse,
  type SecretHandle,
} from '../core/index.ts'
import { outboundFailure } from '../net/index.ts'
import { askTokenEndpoint, createClientAuthentication } from '../oauth/index.ts'
import { tokenTypeUrn, type ResolvedAuthOf, type TokenExchange, type SecretRef } from '../resources/index.ts'
import type { ObtainDeps } from './deps.ts'
import type { Fetched, FetchingSource, Plan } from './source.ts'
import { readExchangeResponse, TOKEN_ENDPOINT } from './token-exchange-response.ts'
import { createTokenToShow, type ShownToken } from './token-to-show.ts'

export type TokenExchangeAuth = Pick<ResolvedAuthOf<'tokenExchange'>, 'name' | 'spec' | 'upstream'>

const GRANT_TYPE = 'urn:ietf:params:oauth:grant-type:token-exchange'
const DEADLINE_MS = 10_000
const MAX_BYTES = 1024 * 1024

/** The parts of the form that are the same for every caller. */
function fixedForm(spec: TokenExchange): (readonly [string, string])[] {
  const scope = (spec.scopes ?? []).join(' ')
  return [
    ['grant_type', GRANT_TYPE],
    ['subject_token_type', tokenTypeUrn(spec.subjectTokenType)],
    ['requested_token_type', tokenTypeUrn(spec.requestedTokenType)],
    ['audience', spec.audience],
    ...(scope === '' ? [] : [['scope', scope] as const]),
    ...(spec.resource === undefined ? [] : [['resource', spec.resource] as const]),
  ]
}

function createLog(config: string, url: string, { log }: ObtainDeps) {
  return (failure: Failure) => {
    const fields = { config, reason: failure.code, detail: failure.detail }
    // An open circuit was logged by what opened it; a line per refused request would only bury that.
    const { cause } = failure
    if (cause instanceof OutboundError && cause.kind === 'breaker_open') log.debug(fields, 'token exchange held back')
    else if (failure.code === 'invalid_token' || failure.code === 'exchange_denied') {
      log.info(fields, 'token exchange refused')
    } else log.warn({ ...fields, url }, 'token exchange failed')
  }
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
  const { clock, secrets } = deps
  const handleOf = (ref: SecretRef | undefined): SecretHandle | undefined =>
    ref === undefined ? undefined : secrets.handle(ref)
  const isAssertion = spec.clientAuthMethod === 'private_key_jwt'
  const clientSecret = handleOf(isAssertion ? spec.clientKeySecretRef : spec.clientSecretRef)
  const actorToken = handleOf(spec.actorTokenSecretRef)
  const subject = createTokenToShow(auth, deps.upstreamTokens)
  const authenticate = createClientAuthentication({
    clientId: spec.clientId,
    secret: clientSecret,
    method: spec.clientAuthMethod,
    clock,
  })
  let recovered: (() => void) | undefined
  const outbound = deps.outbound({
    name,
    // With other roots it can fail where others reach it.
    service: JSON.stringify(['token endpoint', spec.tokenUrl, spec.caCertPath ?? '']),
    onRecovered: () => recovered?.(),
    deadlineMs: DEADLINE_MS,
    maxBytes: MAX_BYTES,
    retry: true,
    ...(spec.caCertPath === undefined ? {} : { caCert: deps.caCertificate(spec.caCertPath) }),
  })
  const client = { outbound, authenticate, secret: clientSecret }
  const form = fixedForm(spec)
  const requestedType = tokenTypeUrn(spec.requestedTokenType)
  const [audience, scope] = [spec.audience, (spec.scopes ?? []).join(' ')]
  const header = spec.externalTokenHeaderName?.toLowerCase() ?? 'authorization'
  const logFailure = createLog(name, spec.tokenUrl, deps)

  const actor = (): (readonly [string, string])[] =>
    actorToken === undefined
      ? []
      : [
          ['actor_token', actorToken.current().reveal()],
          ['actor_token_type', tokenTypeUrn(spec.actorTokenType ?? 'access_token')],
        ]

  const post = (caller: AuthenticatedCaller, subjectToken: Secret, endsAtMs: number): Promise<OutboundResponse> =>
    askTokenEndpoint(client, {
      url: spec.tokenUrl,
      form: [...form, ['subject_token', subjectToken.reveal()], ...actor()],
      onBehalfOf: onBehalfOf(caller),
      endsAtMs,
    })

  const exchange = async (caller: AuthenticatedCaller, shown: ShownToken, endsAtMs: number): Promise<Fetched> => {
    try {
      // The lifetime counts from here: the answer's way back is part of it.
      const sentAtMs = clock.now()
      const response = await post(caller, shown.token, endsAtMs)
      const { iat } = caller.claims
      const issuedAtMs = typeof iat === 'number' ? iat * 1000 : undefined
      const context = { requestedType, sentAtMs, nowMs: clock.now(), issuedAtMs }
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
    secrets: [clientSecret, actorToken].filter((secret) => secret !== undefined),
    isKeyedByToken: auth.upstream === undefined,
    // Plain literals: spreads would leave twice the memory with every caller.
    plan: (caller): Plan => {
      const session = subject.keyParts(caller)
      const keyParts = session.length === 0 ? [audience, scope, caller.tokenDigest] : [audience, scope, ...session]
      return { keyParts, notAfterMs: caller.expiresAtMs }
    },
    deadlineMs: DEADLINE_MS,
    fetch: (caller, _plan, endsAtMs) => subject.show(caller, (shown) => exchange(caller, shown, endsAtMs)),
    onRecovered: (listener) => void (recovered = listener),
    close: () => outbound.close(),
  }
}
