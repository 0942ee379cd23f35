import { type ChallengeHint, type Claims, Failure, type FailureCode, type OutboundResponse } from '../core/index.ts'
import { readJsonObject } from '../http/index.ts'
import type { EntraError } from './entra-errors.ts'

/** Whom an error of a login concerns. */
type Concern =
  /** The user, or a policy about the user. */
  | 'user'
  /** The code or the refresh token. */
  | 'grant'
  /** Us, as a client of the upstream's: somebody has to change a configuration. */
  | 'client'
  /** The upstream itself. */
  | 'outage'

/** What an error of an authorization server stands for. */
interface Meaning {
  readonly login?: Concern
  /** Of a token exchange (decisions §5). Default: nobody can say whose an error is that is not known. */
  readonly exchange?: FailureCode
}

/** RFC 6749 §4.1.2.1 and §5.2, OpenID Connect Core §3.1.2.6, RFC 8693, and what GitHub, Slack and Keycloak say instead. */
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

/** The `error` of an answer (RFC 6749 §5.2); undefined when there is none to be read. */
export function errorOf(response: Pick<OutboundResponse, 'body'>): string | undefined {
  const error = readJsonObject(response.body)?.['error']
  return typeof error === 'string' && error !== '' ? error : undefined
}

/**
 * What an error means that came with this status: `unauthorized_client` with 401 is what Keycloak says of a wrong secret, and
 * `invalid_client` everywhere else (RFC 6749 §5.2 has 401 for client authentication alone).
 */
export const meantBy = (error: string, status: number): string =>
  error === 'unauthorized_client' && status === 401 ? 'invalid_client' : error

const CLIENT_REFUSED: ReadonlySet<string> = new Set([
  'invalid_client',
  'incorrect_client_credentials',
  'bad_client_secret',
])

/** True when an error says that our client id or secret is not the right one. */
export const refusesClient = (error: string): boolean => CLIENT_REFUSED.has(error)

const concernOf = (error: string): Concern | undefined => MEANINGS.get(error)?.login

/** An error response of a token endpoint. */
export interface TokenRefusal {
  readonly status: number
  /** As `meantBy` has it; undefined where the response has none. */
  readonly error: string | undefined
  /** The body is a JSON object or array. */
  readonly isJson: boolean
  readonly entra: EntraError
  readonly members: Claims
}

/** What an error response stands for, where the code alone does not say it. */
export interface RefusalRule {
  readonly code: FailureCode
  readonly challenge?: ChallengeHint
  readonly refusedForMs?: number
  /** Continues the detail. */
  readonly note?: string
}

/** How the error responses of one grant are read. */
export interface Grant {
  /** Undefined: the response can't be used. */
  readonly refused: (refusal: TokenRefusal) => FailureCode | RefusalRule | undefined
  /** What an address stands for that takes no token requests. Default: a response that can't be used. */
  readonly noEndpoint?: FailureCode
}

const UNAVAILABLE: FailureCode = 'identity_provider_unavailable'

/** The failure that an error of a login stands for. */
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

/** Errors at a refresh that speak of configuration whatever their status. */
const REFRESH_CONFIGURATION: ReadonlySet<string> = new Set([
  ...CLIENT_REFUSED,
  'unsupported_grant_type',
  'invalid_scope',
])

/**
 * The refresh token grant (RFC 6749 §6): 400 or 403 with a JSON body means a dead grant, since Atlassian, HubSpot, Metabase and
 * others have names of their own for it. HTML and 404 are outages: nothing is known of the grant.
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

/** True when a refused refresh may be a wrong guess: only `invalid_grant` says that the grant has ended. */
export const mayHeal = ({ code, refusal }: Failure): boolean =>
  code === 'no_session' && refusal !== undefined && refusal.error !== 'invalid_grant'

/** The failure that an error of a token exchange stands for (decisions §5). */
export const exchangeFailure = (error: string): FailureCode => MEANINGS.get(error)?.exchange ?? 'exchange_failed'

/** A grant of callers' tokens; `failureOf` says what an error means, default: as `exchangeFailure`. */
export const callerGrant = (failureOf: (error: string) => FailureCode = exchangeFailure): Grant => ({
  refused: ({ error }) => (error === undefined ? undefined : failureOf(error)),
  noEndpoint: 'config_error',
})

/** A token for the proxy itself: no caller can change what the endpoint refuses. */
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
 * The failure of an error in an authorization response (RFC 6749 §4.1.2.1). Only errors of the table are named: a browser brings
 * it.
 */
export function authorizationFailure(error: string): Failure {
  const code = loginFailure(error)
  return new Failure(code, {
    detail: `authorization endpoint answered ${concernOf(error) === undefined ? 'an error of another name' : error}`,
    ...(code === UNAVAILABLE ? { retryAfterSeconds: 1 } : {}),
  })
}

/**
 * What the refusal of a test code says of the client: `taken` when it is about the code, `unsaid` for an unknown error.
 * Undefined for what is about the client or the upstream itself, and for anything else.
 */
export function saysOfCode({ refusal }: Failure): 'taken' | 'unsaid' | undefined {
  if (refusal?.error === undefined) return undefined
  const concern = concernOf(meantBy(refusal.error, refusal.status))
  return concern === 'grant' ? 'taken' : concern === undefined ? 'unsaid' : undefined
}
