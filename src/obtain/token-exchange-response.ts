import { Failure, type ChallengeHint, type Secret, type FailureCode, type OutboundResponse } from '../core/index.ts'
import { readJsonObject, shownUrl } from '../http/index.ts'
import {
  errorOf,
  exchangeFailure,
  isNoTokenEndpoint,
  jwtEndMs,
  MAX_LIFETIME_MS,
  meantBy,
  readLifetimeMs,
  readTokenValue,
} from '../oauth/index.ts'
import { busyFailure, retryAfterSeconds, type ServiceFailures } from '../net/index.ts'

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

/** RFC 9110 §5.6.2; texts of people have blanks. */
const ERROR_CODE = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}$/

export interface ExchangedToken {
  readonly token: Secret
  readonly expiresAtMs: number
}

/** An answer that can't be used; `detail` says why, in our words. */
export const malformed = (detail: string) => new Failure('exchange_failed', { detail: `token endpoint: ${detail}` })

function isJson(response: OutboundResponse): boolean {
  const type = (response.headers['content-type'] ?? '').split(';')[0]?.trim().toLowerCase() ?? ''
  return type === 'application/json' || (type.startsWith('application/') && type.endsWith('+json'))
}

/** What a response is judged by. */
export interface ExchangeContext {
  readonly tokenUrl: string
  readonly requestedType: string
  /** When the request was sent: a lifetime counts from there. */
  readonly sentAtMs: number
  readonly nowMs: number
  /** When the token that was shown was issued, where it says so. */
  readonly issuedAtMs: number | undefined
}

/** The part of it that is about the token that is given. */
export interface TokenContext extends Pick<ExchangeContext, 'tokenUrl' | 'sentAtMs' | 'nowMs'> {
  /** What troubles of the endpoint are called. Default: those of one that callers' tokens are shown to. */
  readonly service?: ServiceFailures
}

/**
 * `invalid_request` is what RFC 8693 §2.2.2 has for a subject token that is no longer good, and servers answer so to an
 * ended session: then a login helps. It does not help whose token is new, or for all that is known may be.
 */
const isOldToken = (error: string, { issuedAtMs, nowMs }: ExchangeContext): boolean =>
  error === 'invalid_request' && issuedAtMs !== undefined && nowMs - issuedAtMs > FRESH_MS

/**
 * What an error of a token endpoint means. `told` says in our words what was answered; the code alone says that nobody has more
 * to say.
 */
export type JudgeError = (error: string, told: string) => FailureCode | Failure

/** What an error means where somebody's token was shown. */
export const judgeSubject =
  (context: ExchangeContext): JudgeError =>
  (error) =>
    isOldToken(error, context) ? 'invalid_token' : exchangeFailure(error)

/** Space-separated, of characters that stand in quotes as they are; no more than a header takes. */
const ACR_VALUES = /^[\x21\x23-\x5b\x5d-\x7e][\x20\x21\x23-\x5b\x5d-\x7e]{0,1023}$/

/** What another login has to be (RFC 9470 §3); what is not as it should be is left out. */
function stepUpOf(response: OutboundResponse): ChallengeHint {
  const { acr_values: acrValues, max_age: maxAge } = readJsonObject(response.body) ?? {}
  return {
    error: 'insufficient_user_authentication',
    ...(typeof acrValues === 'string' && ACR_VALUES.test(acrValues) ? { acrValues } : {}),
    ...(typeof maxAge === 'number' && Number.isSafeInteger(maxAge) && maxAge >= 0 ? { maxAge } : {}),
  }
}

/** The failure that an answer other than 200 stands for (decisions §5). Of the answer it names the error code alone. */
function refusal(response: OutboundResponse, context: TokenContext, judge: JudgeError): Failure {
  const { tokenUrl, nowMs, service = TOKEN_ENDPOINT } = context
  const busy = busyFailure(response, service, nowMs)
  if (busy !== undefined) return busy
  const { status } = response
  if (isNoTokenEndpoint(response)) {
    const detail = `nothing at tokenUrl takes token requests: ${shownUrl(tokenUrl)} answered ${status}`
    return new Failure('config_error', { detail })
  }
  if (status < 400) return malformed(`it answered ${status}`)
  const error = isJson(response) ? errorOf(response) : undefined
  if (error === undefined) return malformed(`it answered ${status} without an OAuth error`)
  // Of an error that we don't know nobody can say that it is the caller's.
  const told = `${service.what} answered ${status} ${ERROR_CODE.test(error) ? error : 'with an error that is no code'}`
  const code = judge(meantBy(error, status), told)
  if (code instanceof Failure) return code
  return new Failure(code, {
    detail: told,
    ...(code === 'invalid_token' ? { challenge: { error: 'invalid_token' } as const } : {}),
    ...(code === 'insufficient_user_authentication' ? { challenge: stepUpOf(response) } : {}),
    ...(code === 'identity_provider_unavailable'
      ? { retryAfterSeconds: retryAfterSeconds(response, service, nowMs) }
      : {}),
  })
}

/**
 * The token in a token endpoint's answer (RFC 8693 §2.2.1), with its end. `requestedType` may be what was issued, beside
 * access_token and jwt. Throws `exchange_failed` for anything that is not exactly such an answer, and what an error answer
 * stands for.
 */
export function readExchangeResponse(response: OutboundResponse, context: ExchangeContext): ExchangedToken {
  const { requestedType } = context
  const { members, ...read } = readToken(response, context, judgeSubject(context))
  const issuedType = members['issued_token_type']
  if (issuedType !== ACCESS_TOKEN_TYPE && issuedType !== JWT_TYPE && issuedType !== requestedType) {
    throw malformed('issued_token_type is missing or another than asked for')
  }
  const tokenType = members['token_type']
  if (typeof tokenType !== 'string' || !/^(?:bearer|n_a)$/i.test(tokenType)) {
    throw malformed('token_type is neither Bearer nor N_A')
  }
  return read
}

/**
 * The bearer token in the answer to a token request of another grant (RFC 6749 §5.1), with its end. Throws as
 * `readExchangeResponse`, and for an error what it is judged to be.
 */
export function readBearerToken(response: OutboundResponse, context: TokenContext, judge: JudgeError): ExchangedToken {
  const { members, ...read } = readToken(response, context, judge)
  const tokenType = members['token_type']
  if (typeof tokenType !== 'string' || !/^bearer$/i.test(tokenType)) throw malformed('token_type is not Bearer')
  return read
}

/** A token is used for this part of its life at least, however large the skew is: else each request would fetch one. */
const LEAST_USE = 0.1

/** When a token is no longer used that ends `skewMs` earlier than it says. */
export function usedUntilMs(expiresAtMs: number, sentAtMs: number, skewMs: number): number {
  const lifetimeMs = expiresAtMs - sentAtMs
  return sentAtMs + Math.max(lifetimeMs - skewMs, lifetimeMs * LEAST_USE)
}

/** What all have in common: a token, with the members of the answer that it is in. Throws the same. */
export function readToken(
  response: OutboundResponse,
  context: TokenContext,
  judge: JudgeError,
): ExchangedToken & { readonly members: Readonly<Record<string, unknown>> } {
  if (response.status !== 200) throw refusal(response, context, judge)
  const { sentAtMs, nowMs } = context
  if (!isJson(response)) throw malformed('the answer is not application/json')
  const members = readJsonObject(response.body)
  if (members === undefined) throw malformed('the answer is not a JSON object with distinct names')
  if ('error' in members) throw malformed('a 200 answer has an error')
  const token = members['access_token']
  if (typeof token !== 'string' || token === '') throw malformed('access_token is missing')
  const secret = readTokenValue(token, (why) => malformed(`access_token ${why}`))
  const lifetime = readLifetimeMs(members['expires_in'], (why) => malformed(`expires_in ${why}`))
  // Unverified: it only says how long the token is worth keeping.
  const expiresAtMs = lifetime === undefined ? (jwtEndMs(token) ?? sentAtMs + DEFAULT_LIFETIME_MS) : sentAtMs + lifetime
  if (!(expiresAtMs > nowMs)) throw malformed('the token had expired when it arrived')
  return { members, token: secret, expiresAtMs: Math.min(expiresAtMs, sentAtMs + MAX_LIFETIME_MS) }
}
