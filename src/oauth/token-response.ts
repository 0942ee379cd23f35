import {
  type ChallengeHint,
  type Claims,
  type ClaimValue,
  type EpochMs,
  Failure,
  type FailureCode,
  type OutboundResponse,
  type Secret,
} from '../core/index.ts'
import { readJsonObject, shownUrl } from '../http/index.ts'
import { busyFailure, retryAfterSeconds, type ServiceFailures } from '../net/index.ts'
import type { OAuth2Config } from '../resources/index.ts'
import { valueAt } from './dot-path.ts'
import { type EntraError, entraErrorOf } from './entra-errors.ts'
import { type Grant, meantBy, type RefusalRule } from './refusals.ts'
import { isNoTokenEndpoint } from './token-endpoint.ts'
import { readLifetimeMs, readTokenValue } from './token-values.ts'

export type TokenResponseMapping = NonNullable<OAuth2Config['tokenResponseMapping']>

/** The request behind a token response, and the rules to read it. */
export interface TokenRequestContext {
  readonly url: string
  /** Start of lifetimes. */
  readonly sentAtMs: EpochMs
  readonly nowMs: EpochMs
  /** Failure names of the endpoint. */
  readonly service: ServiceFailures
  readonly grant: Grant
  /** Field paths of a non-standard response. Default: RFC 6749 §5.1. */
  readonly mapping?: TokenResponseMapping | undefined
}

/** A token that a token endpoint issued. */
export interface IssuedToken {
  readonly accessToken: Secret
  /** Undefined when the response has no lifetime. */
  readonly expiresAtMs: EpochMs | undefined
  /** The whole response, tokens included. */
  readonly members: Claims
}

/** The tokens of a login, unverified. */
export interface TokenResponse extends IssuedToken {
  readonly refreshToken: Secret | undefined
  readonly idToken: Secret | undefined
  /** Undefined when the response has none: as requested, or as granted before (RFC 6749 §5.1). */
  readonly scopes: readonly string[] | undefined
}

/** ID tokens are not sent in headers, and group lists make them long. */
const MAX_ID_TOKEN_LENGTH = 64 * 1024
const MAX_SCOPES_LENGTH = 8 * 1024
const STANDARD: TokenResponseMapping = {
  accessTokenPath: 'access_token',
  expiresInPath: 'expires_in',
  refreshTokenPath: 'refresh_token',
  scopePath: 'scope',
}
/** RFC 9110 §5.6.2; sentences contain blanks. */
const ERROR_CODE = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}$/

const isAbsent = (value: ClaimValue | undefined): value is null | undefined | '' =>
  value === undefined || value === null || value === ''

/** Failure for an unusable response; `why` has no external values. */
export const unusableToken = ({ what, unusable }: ServiceFailures, why: string): Failure =>
  new Failure(unusable, { detail: `${what}: ${why}` })

/**
 * Reads the access token of a token response, for any grant: any 2xx status with a JSON object (RFC 6749 §5.1). A
 * mapping names other paths; `token_type` then counts as Bearer. `tokenTypes` are case-insensitive. Throws the
 * grant's failure for an error response, and `unusable` of the service otherwise.
 */
export function readIssuedToken(
  response: OutboundResponse,
  context: TokenRequestContext,
  tokenTypes: readonly string[] = ['Bearer'],
): IssuedToken {
  const { service, mapping, sentAtMs, nowMs } = context
  const paths = mapping ?? STANDARD
  const members = readMembers(response, context, paths.accessTokenPath)
  const access = at(members, paths.accessTokenPath, mapping)
  if (isAbsent(access)) throw unusableToken(service, `${paths.accessTokenPath} is missing`)
  const accessToken = readTokenValue(access, (why) => unusableToken(service, `${paths.accessTokenPath} ${why}`))
  const type = members['token_type']
  const isTaken = typeof type === 'string' && tokenTypes.some((one) => one.toLowerCase() === type.toLowerCase())
  if (mapping === undefined && !isTaken) throw unusableToken(service, `token_type is not ${tokenTypes.join(' or ')}`)
  const expiresIn = at(members, paths.expiresInPath, mapping)
  const lifetime = isAbsent(expiresIn)
    ? undefined
    : readLifetimeMs(expiresIn, (why) => unusableToken(service, `${paths.expiresInPath} ${why}`))
  const expiresAtMs = lifetime === undefined ? undefined : sentAtMs + lifetime
  if (expiresAtMs !== undefined && expiresAtMs <= nowMs)
    throw unusableToken(service, 'the token was already expired on arrival')
  return { accessToken, expiresAtMs, members }
}

/** As `readIssuedToken`, with refresh token, ID token and scopes. */
export function readTokenResponse(response: OutboundResponse, context: TokenRequestContext): TokenResponse {
  const issued = readIssuedToken(response, context)
  const { service, mapping } = context
  const paths = mapping ?? STANDARD
  const tokenIn = (value: ClaimValue | undefined, name: string, max?: number): Secret | undefined =>
    isAbsent(value) ? undefined : readTokenValue(value, (why) => unusableToken(service, `${name} ${why}`), max)
  const refreshToken = at(issued.members, paths.refreshTokenPath, mapping)
  return {
    ...issued,
    refreshToken: tokenIn(refreshToken, paths.refreshTokenPath),
    idToken: tokenIn(issued.members['id_token'], 'id_token', MAX_ID_TOKEN_LENGTH),
    scopes: scopesOf(at(issued.members, paths.scopePath, mapping), paths.scopePath, service),
  }
}

const at = (members: Claims, path: string, mapping: TokenResponseMapping | undefined): ClaimValue | undefined =>
  mapping === undefined ? members[path] : valueAt(members, path)

/** RFC 6749 §3.3 uses spaces; GitHub and Slack use commas, Twitch a list. */
function scopesOf(
  value: ClaimValue | undefined,
  name: string,
  service: ServiceFailures,
): readonly string[] | undefined {
  if (isAbsent(value)) return undefined
  const texts = Array.isArray(value) ? (value as readonly ClaimValue[]) : [value]
  const isReadable = texts.every((text) => typeof text === 'string')
  const joined = isReadable ? texts.join(' ') : undefined
  if (joined === undefined || joined.length > MAX_SCOPES_LENGTH)
    throw unusableToken(service, `${name} is not a valid scope list`)
  return joined.split(/[ ,]+/).filter((scope) => scope !== '')
}

/** The object of a success response. Throws the failure of any other response. */
function readMembers(response: OutboundResponse, context: TokenRequestContext, tokenPath: string): Claims {
  const { service, nowMs, url, grant } = context
  const busy = busyFailure(response, service, nowMs)
  if (busy !== undefined) throw busy
  const { status } = response
  const members = readJsonObject(response.body)
  const error = members?.['error']
  const name = typeof error === 'string' && error !== '' ? error : undefined
  if (status >= 200 && status < 300) {
    if (members === undefined) throw unusableToken(service, 'the response is not a JSON object with unique field names')
    // GitHub and Slack return errors with status 200.
    if (name === undefined) return members
    if (!isAbsent(at(members, tokenPath, context.mapping)))
      throw unusableToken(service, 'the response has both an access token and an error')
  }
  // A 404 is no verdict on the code: don't report it as invalid_grant.
  if (isNoTokenEndpoint(response)) {
    const detail = `the ${service.what} accepts no token requests: ${shownUrl(url)} answered ${status}`
    throw new Failure(grant.noEndpoint ?? service.unusable, { detail })
  }
  const refused = refusalOf(response, { members: members ?? {}, error: name, context })
  throw refused ?? unusableToken(service, `it answered ${status} without an OAuth error at ${shownUrl(url)}`)
}

/** The failure of an error response; undefined when the grant has no rule for it. */
function refusalOf(
  response: OutboundResponse,
  of: { readonly members: Claims; readonly error: string | undefined; readonly context: TokenRequestContext },
): Failure | undefined {
  const { members, error, context } = of
  const { status } = response
  const { service, nowMs, grant } = context
  // A 401 without an error means failed client authentication (RFC 6749 §5.2).
  const meant = error === undefined ? (status === 401 ? 'invalid_client' : undefined) : meantBy(error, status)
  const entra = entraErrorOf(members)
  const code = grant.refused({ status, error: meant, isJson: isJson(response.body), entra, members })
  if (code === undefined) return undefined
  const what = `${service.what} answered ${status}`
  const unnamed = meant === undefined ? ' without an OAuth error' : `, which means ${meant}`
  const named = error === undefined ? unnamed : ` ${namedError(error)}`
  const failure: RefusalRule = typeof code === 'string' ? { code } : code
  const { challenge = challengeOf(failure.code, members), refusedForMs, note = '' } = failure
  return new Failure(failure.code, {
    detail: `${what}${named}${explained(entra, note)}`,
    refusal: { status, error },
    ...(challenge === undefined ? {} : { challenge }),
    ...(refusedForMs === undefined ? {} : { refusedForMs }),
    ...(failure.code === 'identity_provider_unavailable'
      ? { retryAfterSeconds: retryAfterSeconds(response, service, nowMs) }
      : {}),
  })
}

const namedError = (error: string): string => (ERROR_CODE.test(error) ? error : 'with an invalid error code')

function explained({ known, traces }: EntraError, note: string): string {
  return `${known === undefined ? '' : `: ${known.meaning}`}${note}${traces === '' ? '' : ` (${traces})`}`
}

/** Space-separated, of characters that need no escape in quotes, within header size limits. */
const ACR_VALUES = /^[\x21\x23-\x5b\x5d-\x7e][\x20\x21\x23-\x5b\x5d-\x7e]{0,1023}$/

function challengeOf(code: FailureCode, members: Claims): ChallengeHint | undefined {
  if (code === 'invalid_token' || code === 'no_session') return { error: 'invalid_token' }
  if (code !== 'insufficient_user_authentication') return undefined
  // Required step-up (RFC 9470 §3); invalid values are ignored.
  const { acr_values: acrValues, max_age: maxAge } = members
  return {
    error: 'insufficient_user_authentication',
    ...(typeof acrValues === 'string' && ACR_VALUES.test(acrValues) ? { acrValues } : {}),
    ...(typeof maxAge === 'number' && Number.isSafeInteger(maxAge) && maxAge >= 0 ? { maxAge } : {}),
  }
}

/** True for a JSON object or array, whatever the content type. */
function isJson(body: Uint8Array): boolean {
  try {
    const value: unknown = JSON.parse(Buffer.from(body).toString('utf8'))
    return typeof value === 'object' && value !== null
  } catch {
    return false
  }
}
