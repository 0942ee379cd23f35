import { hashKey, createTtlLru } from '../cache/index.ts'
import type { Clock, EpochMs, OutboundResponse, Secret } from '../core/index.ts'
import type { ServiceFailures } from '../net/index.ts'
import {
  callerGrant,
  exchangeFailure,
  type Grant,
  jwtEndMs,
  MAX_LIFETIME_MS,
  readIssuedToken,
  type TokenRequestContext,
  unusableToken,
} from '../oauth/index.ts'
import type { SubjectToken } from './subject-token-source.ts'

const ACCESS_TOKEN_TYPE = 'urn:ietf:params:oauth:token-type:access_token'
const JWT_TYPE = 'urn:ietf:params:oauth:token-type:jwt'

const DEFAULT_LIFETIME_MS = 5 * 60_000

/** Failure codes of a token endpoint. */
export const TOKEN_ENDPOINT: ServiceFailures = {
  what: 'token endpoint',
  unavailable: 'identity_provider_unavailable',
  unusable: 'exchange_failed',
  isAboutTokens: true,
}

/** As above, for requests without a caller's token: failures concern no token and are retried without its pause. */
export const OWN_TOKEN_ENDPOINT: ServiceFailures = { ...TOKEN_ENDPOINT, isAboutTokens: false }

/** A token older than this was valid when new, so `invalid_request` concerns its session. */
const FRESH_MS = 2 * 60_000
/** Limits for tracking first uses of subject tokens without `iat`. */
const MOST_AGES = 10_000
const AGES_KEPT_MS = 24 * 3_600_000

export interface ExchangedToken {
  readonly token: Secret
  readonly expiresAtMs: EpochMs
}

/** The request behind a response. `service` defaults to that of callers' tokens. */
export type TokenContext = Omit<TokenRequestContext, 'service' | 'grant' | 'mapping'> &
  Partial<Pick<TokenRequestContext, 'service'>>

export interface ExchangeContext extends TokenContext {
  readonly requestedType: string
  /** When the subject token was issued, or first presented. */
  readonly issuedAtMs: EpochMs
}

/** Tracks when subject tokens were issued; those without `iat` count from their first use. */
export function createTokenAges(clock: Clock): (shown: SubjectToken) => number {
  const firstUses = createTtlLru<number>({ clock, maxEntries: MOST_AGES })
  return ({ token, issuedAtMs }) => {
    if (issuedAtMs !== undefined) return issuedAtMs
    const key = hashKey([token.reveal()])
    const nowMs = clock.now()
    const firstMs = firstUses.get(key) ?? nowMs
    firstUses.set(key, firstMs, nowMs + AGES_KEPT_MS)
    return firstMs
  }
}

/**
 * RFC 8693 §2.2.2 defines `invalid_request` for an invalid subject token, and servers return it after a session
 * ended: a login helps, unless the token is new.
 */
const subjectGrant = ({ issuedAtMs, nowMs }: ExchangeContext): Grant =>
  callerGrant((error) =>
    error === 'invalid_request' && nowMs - issuedAtMs > FRESH_MS ? 'invalid_token' : exchangeFailure(error),
  )

/**
 * Reads the token of a token exchange response (RFC 8693 §2.2.1), with its expiry. `isIssuedType` checks
 * `issued_token_type`. Throws `exchange_failed` for a nonconforming response, and the failure of an error response.
 */
export function readSubjectExchange(
  response: OutboundResponse,
  context: ExchangeContext,
  tokenTypes: readonly string[],
  isIssuedType: (type: unknown) => boolean,
): ExchangedToken {
  const { members, ...read } = readToken(response, context, subjectGrant(context), tokenTypes)
  if (!isIssuedType(members['issued_token_type']))
    throw unusableToken(
      context.service ?? TOKEN_ENDPOINT,
      'issued_token_type is missing or differs from the requested type',
    )
  return read
}

/** As above, for an access token or a JWT; `requestedType` is accepted in addition. */
export const readExchangeResponse = (response: OutboundResponse, context: ExchangeContext): ExchangedToken =>
  readSubjectExchange(
    response,
    context,
    ['Bearer', 'N_A'],
    (type) => type === ACCESS_TOKEN_TYPE || type === JWT_TYPE || type === context.requestedType,
  )

/** Reads the bearer token of another grant's response (RFC 6749 §5.1), with its expiry. Throws likewise. */
export function readBearerToken(response: OutboundResponse, context: TokenContext, grant: Grant): ExchangedToken {
  const { token, expiresAtMs } = readToken(response, context, grant)
  return { token, expiresAtMs }
}

/**
 * A token is used for at least this part of its lifetime, however large the skew; otherwise each request would fetch
 * one.
 */
const LEAST_USE = 0.1

/** Until when a token is used, with a margin of `skewMs` before its expiry. */
export function usedUntilMs(expiresAtMs: EpochMs, sentAtMs: EpochMs, skewMs: number): number {
  const lifetimeMs = expiresAtMs - sentAtMs
  return sentAtMs + Math.max(lifetimeMs - skewMs, lifetimeMs * LEAST_USE)
}

function readToken(
  response: OutboundResponse,
  context: TokenContext,
  grant: Grant,
  tokenTypes?: readonly string[],
): ExchangedToken & { readonly members: Readonly<Record<string, unknown>> } {
  const { service = TOKEN_ENDPOINT, sentAtMs, nowMs } = context
  const { accessToken, members, ...issued } = readIssuedToken(response, { ...context, service, grant }, tokenTypes)
  // Unverified: only determines the cache lifetime.
  const expiresAtMs = issued.expiresAtMs ?? jwtEndMs(accessToken.reveal()) ?? sentAtMs + DEFAULT_LIFETIME_MS
  if (!(expiresAtMs > nowMs)) throw unusableToken(service, 'the token was already expired on arrival')
  return { members, token: accessToken, expiresAtMs: Math.min(expiresAtMs, sentAtMs + MAX_LIFETIME_MS) }
}
