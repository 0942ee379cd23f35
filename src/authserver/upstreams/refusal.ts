import { Failure, type FailureCode } from '../../core/index.ts'

/** Where in the way to an upstream something happened. */
export type Step = 'authorize' | 'code' | 'refresh'

/** Whom an error of the upstream's concerns. */
type Concern =
  /** The user, or a policy about the user. */
  | 'user'
  /** The code or the refresh token. */
  | 'grant'
  /** Us, as a client of the upstream's: somebody has to change a configuration. */
  | 'client'
  /** The upstream itself. */
  | 'outage'

/** RFC 6749 §4.1.2.1 and §5.2, OpenID Connect Core §3.1.2.6, and what GitHub, Slack and Keycloak say instead. */
const CONCERNS: ReadonlyMap<string, Concern> = new Map<string, Concern>([
  ['access_denied', 'user'],
  ['login_required', 'user'],
  ['consent_required', 'user'],
  ['interaction_required', 'user'],
  ['account_selection_required', 'user'],
  ['not_allowed', 'user'],
  ['invalid_grant', 'grant'],
  ['invalid_token', 'grant'],
  ['bad_verification_code', 'grant'],
  ['bad_refresh_token', 'grant'],
  ['invalid_code', 'grant'],
  ['invalid_refresh_token', 'grant'],
  ['invalid_client', 'client'],
  ['incorrect_client_credentials', 'client'],
  ['bad_client_secret', 'client'],
  ['unauthorized_client', 'client'],
  ['unsupported_grant_type', 'client'],
  ['unsupported_response_type', 'client'],
  ['invalid_scope', 'client'],
  ['invalid_target', 'client'],
  ['redirect_uri_mismatch', 'client'],
  ['bad_redirect_uri', 'client'],
  ['server_error', 'outage'],
  ['temporarily_unavailable', 'outage'],
  ['slow_down', 'outage'],
  ['ratelimited', 'outage'],
])

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
  const detail = `${where} answered ${CONCERNS.has(error) ? error : OTHER_NAME}`
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
  if (error !== undefined && CONCERNS.get(error) === 'grant') return 'taken'
  return detail?.endsWith(OTHER_NAME) === true ? 'unsaid' : undefined
}

const OTHER_NAME = 'an error of another name'

function codeOf(step: Step, error: string): FailureCode {
  const concern = CONCERNS.get(error)
  if (concern === 'client') return 'config_error'
  if (concern === 'outage') return 'identity_provider_unavailable'
  // Whatever is wrong with a refresh token, a new login mends it (authserver.md §6).
  if (step === 'refresh') return 'no_session'
  return concern === 'user' ? 'login_refused' : 'identity_provider_error'
}
