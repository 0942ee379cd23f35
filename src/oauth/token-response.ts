import { type Claims, type ClaimValue, Failure, type OutboundResponse, type Secret } from '../core/index.ts'
import { readJsonObject, shownUrl } from '../http/index.ts'
import { busyFailure, retryAfterSeconds } from '../net/index.ts'
import type { OAuth2Config } from '../resources/index.ts'
import { serviceOf } from './documents.ts'
import { valueAt } from './dot-path.ts'
import { errorOf, refusal, type Step } from './refusals.ts'
import { isNoTokenEndpoint } from './token-endpoint.ts'
import { readLifetimeMs, readTokenValue } from './token-values.ts'

export type TokenResponseMapping = NonNullable<OAuth2Config['tokenResponseMapping']>

/** What a token endpoint gave, read but not judged. */
export interface TokenResponse {
  readonly accessToken: Secret
  readonly refreshToken: Secret | undefined
  /** Unverified. */
  readonly idToken: Secret | undefined
  /** Milliseconds since the epoch; undefined when the upstream did not say. */
  readonly expiresAtMs: number | undefined
  /** Undefined when the upstream did not say: what was asked for, or what was granted before. */
  readonly scopes: readonly string[] | undefined
}

export interface ReadOptions {
  /** Where it was asked. */
  readonly url: string
  readonly step: Step
  /** Where a non-standard answer has its fields; absent: RFC 6749 §5.1. */
  readonly mapping: TokenResponseMapping | undefined
  /** When the request was sent: lifetimes count from there. */
  readonly sentAtMs: number
  readonly nowMs: number
}

const WHERE = 'token endpoint'
const SERVICE = serviceOf(WHERE)
/** An ID token never goes into a header of ours, and group lists make it long. */
const MAX_ID_TOKEN_LENGTH = 64 * 1024
const MAX_SCOPES_LENGTH = 8 * 1024
const STANDARD: TokenResponseMapping = {
  accessTokenPath: 'access_token',
  expiresInPath: 'expires_in',
  refreshTokenPath: 'refresh_token',
  scopePath: 'scope',
}

/** What was answered can't be used. */
const unusable = (detail: string): Failure => new Failure('identity_provider_error', { detail })

const isAbsent = (value: ClaimValue | undefined): value is null | undefined | '' =>
  value === undefined || value === null || value === ''

/** `what` in our words. */
const because =
  (what: string) =>
  (why: string): Failure =>
    unusable(`${WHERE}: the ${what} ${why}`)

/** RFC 6749 §3.3 has spaces; GitHub and Slack have commas, others a list. */
function scopesOf(value: ClaimValue | undefined): readonly string[] | undefined {
  if (isAbsent(value)) return undefined
  const texts = Array.isArray(value) ? (value as readonly ClaimValue[]) : [value]
  const isReadable = texts.every((text) => typeof text === 'string')
  const joined = isReadable ? texts.join(' ') : undefined
  if (joined === undefined || joined.length > MAX_SCOPES_LENGTH) throw unusable(`${WHERE}: the scopes can't be read`)
  return joined.split(/[ ,]+/).filter((scope) => scope !== '')
}

/**
 * The members of a token endpoint's answer, tokens among them: they go nowhere but into `tokensIn` and what looks for a user.
 * Throws what an error answer stands for, and `identity_provider_error` for what can't be used.
 */
export function membersOf(
  response: OutboundResponse,
  { url, step, nowMs }: Pick<ReadOptions, 'url' | 'step' | 'nowMs'>,
): Claims {
  const busy = busyFailure(response, SERVICE, nowMs)
  if (busy !== undefined) throw busy
  const { status } = response
  // Nobody's code or grant is worth nothing because there is nothing at this address.
  if (isNoTokenEndpoint(response)) throw unusable(`${WHERE} answered ${status} at ${shownUrl(url)}`)
  const error = errorOf(response)
  // Some answer 200 with an error in it (GitHub, Slack).
  if (error !== undefined) throw refusal(step, error, WHERE, retryAfterSeconds(response, SERVICE, nowMs))
  // A 401 without a word is about client authentication (RFC 6749 §5.2).
  if (status === 401) throw refusal(step, 'invalid_client', WHERE)
  if (status !== 200) throw unusable(`${WHERE} answered ${status} at ${shownUrl(url)}, without an OAuth error`)
  const members = readJsonObject(response.body)
  if (members === undefined) throw unusable(`${WHERE}: the answer is not a JSON object with distinct names`)
  return members
}

/**
 * What is in a token endpoint's answer: RFC 6749 §5.1 to the letter, or with a mapping from the paths that it names, where
 * `token_type` is taken as Bearer whatever it says (specification, `tokenResponseMapping`). Throws what an error answer
 * stands for, and `identity_provider_error` for what can't be used.
 */
export const readTokenResponse = (response: OutboundResponse, options: ReadOptions): TokenResponse =>
  tokensIn(membersOf(response, options), options)

/** The same of members that have been read. */
export function tokensIn(
  members: Claims,
  { mapping, sentAtMs }: Pick<ReadOptions, 'mapping' | 'sentAtMs'>,
): TokenResponse {
  const paths = mapping ?? STANDARD
  const at = (path: string) => (mapping === undefined ? members[path] : valueAt(members, path))
  const access = at(paths.accessTokenPath)
  if (isAbsent(access)) throw unusable(`${WHERE}: there is no access token in the answer`)
  const accessToken = readTokenValue(access, because('access token'))
  if (mapping === undefined && !isBearer(members['token_type'])) throw unusable(`${WHERE}: token_type is not Bearer`)
  const [refresh, id] = [at(paths.refreshTokenPath), members['id_token']]
  const expiresIn = at(paths.expiresInPath)
  const lifetime = isAbsent(expiresIn) ? undefined : readLifetimeMs(expiresIn, because('lifetime'))
  return {
    accessToken,
    refreshToken: isAbsent(refresh) ? undefined : readTokenValue(refresh, because('refresh token')),
    idToken: isAbsent(id) ? undefined : readTokenValue(id, because('ID token'), MAX_ID_TOKEN_LENGTH),
    expiresAtMs: lifetime === undefined ? undefined : sentAtMs + lifetime,
    scopes: scopesOf(at(paths.scopePath)),
  }
}

const isBearer = (type: ClaimValue | undefined): boolean => typeof type === 'string' && /^bearer$/i.test(type)
