import { hashKey, createTtlLru } from '../cache/index.ts'
import type { Clock, OutboundResponse, Secret } from '../core/index.ts'
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
import type { ShownToken } from './token-to-show.ts'

const ACCESS_TOKEN_TYPE = 'urn:ietf:params:oauth:token-type:access_token'
const JWT_TYPE = 'urn:ietf:params:oauth:token-type:jwt'

const DEFAULT_LIFETIME_MS = 5 * 60_000

/** What goes wrong at a token endpoint, in the words of the error table. */
export const TOKEN_ENDPOINT: ServiceFailures = {
  what: 'token endpoint',
  unavailable: 'identity_provider_unavailable',
  unusable: 'exchange_failed',
  isAboutTokens: true,
}

/** The same where no caller's token is shown: what goes wrong is about none, and is tried again as soon as anything is. */
export const OWN_TOKEN_ENDPOINT: ServiceFailures = { ...TOKEN_ENDPOINT, isAboutTokens: false }

/** A token that is older than this was good when it was new, so that `invalid_request` is about its session. */
const FRESH_MS = 2 * 60_000
/** Subject tokens without `iat` whose first use is remembered, and for how long. */
const MOST_AGES = 10_000
const AGES_KEPT_MS = 24 * 3_600_000

export interface ExchangedToken {
  readonly token: Secret
  readonly expiresAtMs: number
}

/** The request that a response answers. `service` is by default that of callers' tokens. */
export type TokenContext = Omit<TokenRequestContext, 'service' | 'grant' | 'mapping'> &
  Partial<Pick<TokenRequestContext, 'service'>>

export interface ExchangeContext extends TokenContext {
  readonly requestedType: string
  /** When the subject token was issued, or was presented for the first time. */
  readonly issuedAtMs: number
}

/** When subject tokens were issued: those without `iat` count from their first use here. */
export function createTokenAges(clock: Clock): (shown: ShownToken) => number {
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
 * `invalid_request` is what RFC 8693 §2.2.2 has for a subject token that is no longer good, and servers answer so to an
 * ended session: then a login helps. It does not help a caller whose token is new.
 */
const subjectGrant = ({ issuedAtMs, nowMs }: ExchangeContext): Grant =>
  callerGrant((error) =>
    error === 'invalid_request' && nowMs - issuedAtMs > FRESH_MS ? 'invalid_token' : exchangeFailure(error),
  )

/**
 * The token in the response to a token exchange (RFC 8693 §2.2.1), with its end. `isIssuedType` tells whether `issued_token_type` is
 * taken. Throws `exchange_failed` for anything that is not exactly such a response, and what an error response stands for.
 */
export function readSubjectExchange(
  response: OutboundResponse,
  context: ExchangeContext,
  tokenTypes: readonly string[],
  isIssuedType: (type: unknown) => boolean,
): ExchangedToken {
  const { members, ...read } = readToken(response, context, subjectGrant(context), tokenTypes)
  if (!isIssuedType(members['issued_token_type']))
    throw unusableToken(context.service ?? TOKEN_ENDPOINT, 'issued_token_type is missing or another than asked for')
  return read
}

/** The same for an access token or a JWT; `requestedType` may be what was issued beside these. */
export const readExchangeResponse = (response: OutboundResponse, context: ExchangeContext): ExchangedToken =>
  readSubjectExchange(
    response,
    context,
    ['Bearer', 'N_A'],
    (type) => type === ACCESS_TOKEN_TYPE || type === JWT_TYPE || type === context.requestedType,
  )

/** The bearer token in the response to a token request of another grant (RFC 6749 §5.1), with its end. Throws the same. */
export function readBearerToken(response: OutboundResponse, context: TokenContext, grant: Grant): ExchangedToken {
  const { token, expiresAtMs } = readToken(response, context, grant)
  return { token, expiresAtMs }
}

/** A token is used for this part of its life at least, however large the skew is: else each request would fetch one. */
const LEAST_USE = 0.1

/** When a token is no longer used that ends `skewMs` earlier than it says. */
export function usedUntilMs(expiresAtMs: number, sentAtMs: number, skewMs: number): number {
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
  // Unverified: it only says how long the token is worth keeping.
  const expiresAtMs = issued.expiresAtMs ?? jwtEndMs(accessToken.reveal()) ?? sentAtMs + DEFAULT_LIFETIME_MS
  if (!(expiresAtMs > nowMs)) throw unusableToken(service, 'the token had expired when it arrived')
  return { members, token: accessToken, expiresAtMs: Math.min(expiresAtMs, sentAtMs + MAX_LIFETIME_MS) }
}
