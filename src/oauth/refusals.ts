import { Failure, type FailureCode, type OutboundResponse } from '../core/index.ts'
import { readJsonObject } from '../http/index.ts'

/** Where in the way to an upstream something happened. */
export type Step = 'authorize' | 'code' | 'refresh'

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

/** The failure that an error of a token exchange stands for (decisions §5). */
export const exchangeFailure = (error: string): FailureCode => MEANINGS.get(error)?.exchange ?? 'exchange_failed'

/** The same for a token of the proxy's own: it was refused to us, and nobody who calls can mend that. */
export function ownTokenFailure(error: string): FailureCode {
  const meaning = MEANINGS.get(error)
  if (meaning === undefined) return 'exchange_failed'
  return meaning.login === 'outage' ? 'identity_provider_unavailable' : 'config_error'
}

const concernOf = (error: string): Concern | undefined => MEANINGS.get(error)?.login

const CLIENT_REFUSED: ReadonlySet<string> = new Set([
  'invalid_client',
  'incorrect_client_credentials',
  'bad_client_secret',
])

/** True when an error says that our client id or secret is not the right one. */
export const refusesClient = (error: string): boolean => CLIENT_REFUSED.has(error)

/**
 * The failure that an OAuth error of an upstream stands for. Only errors of our own table are named; anything else an
 * upstream says stays unsaid.
 */
export function refusal(step: Step, error: string, where: string, retryAfterSeconds = 1): Failure {
  const detail = `${where} answered ${concernOf(error) !== undefined ? error : OTHER_NAME}`
  const code = codeOf(step, error)
  return new Failure(code, {
    detail,
    ...(code === 'identity_provider_unavailable' ? { retryAfterSeconds } : {}),
  })
}

/**
 * What a refusal of a code that nobody was given says of the client: `taken` when it is about the code, `unsaid` when it is
 * an error of no name that is known. Undefined for what is about the client or the upstream itself, and for anything else.
 */
export function saysOfCode({ detail }: Failure): 'taken' | 'unsaid' | undefined {
  const error = / answered ([a-z_]+)$/.exec(detail ?? '')?.[1]
  if (error !== undefined && concernOf(error) === 'grant') return 'taken'
  return detail?.endsWith(OTHER_NAME) === true ? 'unsaid' : undefined
}

const OTHER_NAME = 'an error of another name'

function codeOf(step: Step, error: string): FailureCode {
  const concern = concernOf(error)
  if (concern === 'client') return 'config_error'
  if (concern === 'outage') return 'identity_provider_unavailable'
  // Whatever is wrong with a refresh token, a new login mends it (authserver.md §6).
  if (step === 'refresh') return 'no_session'
  return concern === 'user' ? 'login_refused' : 'identity_provider_error'
}
