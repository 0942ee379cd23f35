import { type ChallengeHint, type Claims, Failure, type FailureCode, type OutboundResponse } from '../core/index.ts'
import { readJsonObject } from '../http/index.ts'
import type { EntraError } from './entra-errors.ts'

/** The party an OAuth error concerns. */
type Concern =
  /** The user, or a policy about the user. */
  | 'user'
  /** The code or the refresh token. */
  | 'grant'
  /** The proxy as the upstream's client: requires a configuration change. */
  | 'client'
  /** The upstream itself. */
  | 'outage'

/** The meaning of an authorization server's error. */
interface Meaning {
  readonly login?: Concern
  /** For a token exchange (decisions §5). Default: an unknown error has no known party. */
  readonly exchange?: FailureCode
}

/**
 * RFC 6749 §4.1.2.1 and §5.2, OpenID Connect Core §3.1.2.6, RFC 8693, and codes specific to GitHub, Slack and
 * Keycloak.
 */
const MEANINGS: ReadonlyMap<string, Meaning> = new Map<string, Meaning>([
  ['access_denied', { login: 'user', exchange: 'exchange_denied' }],
  ['login_required', { login: 'user' }],
  ['consent_required', { login: 'user' }],
  ['interaction_required', { login: 'user' }],
  ['account_selection_required', { login: 'user' }],
  ['not_allowed', { login: 'user' }],
  ['invalid_grant', { login: 'grant', exchange: 'invalid_token' }],
  ['invalid_token', { login: 'grant', exchange: 'invalid_token' }],
  ['bad_verification_code', { login: 'grant' }],
  ['bad_refresh_token', { login: 'grant' }],
  ['invalid_code', { login: 'grant' }],
  ['invalid_refresh_token', { login: 'grant' }],
  ['insufficient_user_authentication', { exchange: 'insufficient_user_authentication' }],
  ['invalid_client', { login: 'client', exchange: 'config_error' }],
  ['incorrect_client_credentials', { login: 'client' }],
  ['bad_client_secret', { login: 'client' }],
  ['unauthorized_client', { login: 'client', exchange: 'exchange_denied' }],
  ['unsupported_grant_type', { login: 'client', exchange: 'config_error' }],
  ['unsupported_response_type', { login: 'client' }],
  ['invalid_scope', { login: 'client', exchange: 'config_error' }],
  ['invalid_resource', { exchange: 'config_error' }],
  ['invalid_target', { login: 'client', exchange: 'exchange_denied' }],
  ['redirect_uri_mismatch', { login: 'client' }],
  ['bad_redirect_uri', { login: 'client' }],
  ['invalid_request', { exchange: 'exchange_denied' }],
  ['server_error', { login: 'outage', exchange: 'identity_provider_unavailable' }],
  ['temporarily_unavailable', { login: 'outage', exchange: 'identity_provider_unavailable' }],
  ['slow_down', { login: 'outage', exchange: 'identity_provider_unavailable' }],
  ['ratelimited', { login: 'outage' }],
])

/** The `error` of a response (RFC 6749 §5.2); undefined when it has none. */
export function errorOf(response: Pick<OutboundResponse, 'body'>): string | undefined {
  const error = readJsonObject(response.body)?.['error']
  return typeof error === 'string' && error !== '' ? error : undefined
}

/**
 * The meaning of an error with this status: Keycloak returns `unauthorized_client` with 401 for a wrong secret,
 * elsewhere `invalid_client` (RFC 6749 §5.2 reserves 401 for client authentication).
 */
export const meantBy = (error: string, status: number): string =>
  error === 'unauthorized_client' && status === 401 ? 'invalid_client' : error

const CLIENT_REFUSED: ReadonlySet<string> = new Set([
  'invalid_client',
  'incorrect_client_credentials',
  'bad_client_secret',
])

/** True when an error means a wrong client id or secret. */
export const refusesClient = (error: string): boolean => CLIENT_REFUSED.has(error)

const concernOf = (error: string): Concern | undefined => MEANINGS.get(error)?.login

/** An error response of a token endpoint. */
export interface TokenRefusal {
  readonly status: number
  /** As returned by `meantBy`; undefined when the response has none. */
  readonly error: string | undefined
  /** The body is a JSON object or array. */
  readonly isJson: boolean
  readonly entra: EntraError
  readonly members: Claims
}

/** The meaning of an error response beyond its code. */
export interface RefusalRule {
  readonly code: FailureCode
  readonly challenge?: ChallengeHint
  readonly refusedForMs?: number
  /** Appended to the detail. */
  readonly note?: string
}

/** How to interpret the error responses of a grant. */
export interface Grant {
  /** Undefined: the response is unusable. */
  readonly refused: (refusal: TokenRefusal) => FailureCode | RefusalRule | undefined
  /** The failure for a URL that is no token endpoint. Default: an unusable response. */
  readonly noEndpoint?: FailureCode
}

const UNAVAILABLE: FailureCode = 'identity_provider_unavailable'

/** The failure for a login error. */
function loginFailure(error: string): FailureCode {
  const concern = concernOf(error)
  if (concern === 'client') return 'config_error'
  if (concern === 'outage') return UNAVAILABLE
  return concern === 'user' ? 'login_refused' : 'identity_provider_error'
}

/** The authorization code grant (RFC 6749 §4.1.3). */
export const CODE_GRANT: Grant = {
  refused: ({ error }) => (error === undefined ? undefined : loginFailure(error)),
  noEndpoint: 'config_error',
}

/** Refresh errors that mean a configuration problem, whatever their status. */
const REFRESH_CONFIGURATION: ReadonlySet<string> = new Set([
  ...CLIENT_REFUSED,
  'unsupported_grant_type',
  'invalid_scope',
])

/**
 * The refresh token grant (RFC 6749 §6): 400 or 403 with a JSON body means that the grant is invalid, since
 * Atlassian, HubSpot, Metabase and others use their own error names. HTML and 404 are outages, which say nothing
 * about the grant.
 */
export const REFRESH_GRANT: Grant = {
  refused({ status, error, isJson }) {
    const concern = error === undefined ? undefined : concernOf(error)
    if (concern === 'outage') return UNAVAILABLE
    if (error !== undefined && REFRESH_CONFIGURATION.has(error)) return 'config_error'
    if (concern === 'grant') return 'no_session'
    if (status === 401) return 'config_error'
    const isRefusal = status === 400 || status === 403 || (status < 300 && error !== undefined)
    return isRefusal && isJson ? 'no_session' : undefined
  },
}

/** True when a rejected refresh may be misinterpreted: only `invalid_grant` certainly means an invalid grant. */
export const mayHeal = ({ code, refusal }: Failure): boolean =>
  code === 'no_session' && refusal !== undefined && refusal.error !== 'invalid_grant'

/** The failure for a token exchange error (decisions §5). */
export const exchangeFailure = (error: string): FailureCode => MEANINGS.get(error)?.exchange ?? 'exchange_failed'

/** A grant with callers' tokens; `failureOf` maps errors, default `exchangeFailure`. */
export const callerGrant = (failureOf: (error: string) => FailureCode = exchangeFailure): Grant => ({
  refused: ({ error }) => (error === undefined ? undefined : failureOf(error)),
  noEndpoint: 'config_error',
})

/** A token for the proxy itself: callers cannot affect rejections. */
export const OWN_GRANT: Grant = {
  refused({ error }) {
    if (error === undefined) return undefined
    const meaning = MEANINGS.get(error)
    if (meaning === undefined) return 'exchange_failed'
    return meaning.login === 'outage' ? UNAVAILABLE : 'config_error'
  },
  noEndpoint: 'config_error',
}

/**
 * The failure for an error in an authorization response (RFC 6749 §4.1.2.1). Unknown errors are not quoted, because a
 * browser delivers them.
 */
export function authorizationFailure(error: string): Failure {
  const code = loginFailure(error)
  return new Failure(code, {
    detail: `authorization endpoint answered ${concernOf(error) === undefined ? 'an unknown error' : error}`,
    ...(code === UNAVAILABLE ? { retryAfterSeconds: 1 } : {}),
  })
}

/**
 * The verdict on the client from the rejection of an invalid test code: `taken` when it is about the code, `unsaid` for
 * an unknown error. Undefined for errors of the client or the upstream, and for anything else.
 */
export function codeVerdict({ refusal }: Failure): 'taken' | 'unsaid' | undefined {
  if (refusal?.error === undefined) return undefined
  const concern = concernOf(meantBy(refusal.error, refusal.status))
  return concern === 'grant' ? 'taken' : concern === undefined ? 'unsaid' : undefined
}
