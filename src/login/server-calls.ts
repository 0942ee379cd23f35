import {
  type Claims,
  CredentialRefusal,
  Failure,
  isLoopbackHost,
  type Outbound,
  OutboundError,
  type OutboundResponse,
  Secret,
  type SecretHandle,
} from '../core/index.ts'
import { askTokenEndpoint, type ClientSettings, createClientAuthentication } from '../oauth/index.ts'
import type { LoginRecord } from './store.ts'

/** True for what may be asked or shown to a browser: https, or plain http on this machine. */
export function isSafeUrl(url: unknown): url is string {
  const parsed = typeof url === 'string' ? URL.parse(url) : null
  if (parsed === null || parsed.username !== '' || parsed.password !== '') return false
  return parsed.protocol === 'https:' || (parsed.protocol === 'http:' && isLoopbackHost(parsed.hostname))
}

/** A secret that stays what it is. */
const fixed = (value: string): SecretHandle => {
  const secret = new Secret(value)
  return { label: 'client secret', version: 1, current: () => secret, refresh: () => Promise.resolve(false) }
}

/**
 * Posts a form to an endpoint of the authorization server as the client of a login (RFC 6749 §2.3): by Basic, with id and
 * secret in the body where it was registered so, or with `client_id` alone. An answer with any status is returned. Throws
 * `OutboundError`, and `CredentialRefusal` for an address that may not be asked.
 */
export async function askAs(
  client: LoginRecord['client'],
  url: string,
  form: readonly (readonly [string, string])[],
  outbound: Outbound,
): Promise<OutboundResponse> {
  if (!isSafeUrl(url)) throw loginRefusal('an endpoint of the authorization server has no https address')
  const { client_id: clientId, client_secret: value, token_endpoint_auth_method: registered } = client
  const method = registered === 'client_secret_post' ? 'clientSecretPost' : 'clientSecretBasic'
  const settings: ClientSettings =
    value === undefined || registered === 'none'
      ? { method: 'none', clientId }
      : { method, clientId, secret: fixed(value) }
  const shown = createClientAuthentication(settings, Date)
  return askTokenEndpoint({ outbound, client: shown }, { url, form })
}

/**
 * A login or a refresh failed, in words for the user: `what` continues "The login failed: …". Nothing of it is foreign text:
 * details of failures name errors of our own table alone.
 */
export function loginRefusal(what: string, error?: unknown): CredentialRefusal {
  const why = error === undefined ? undefined : whyOf(error)
  return new CredentialRefusal('login_failed', `The login failed: ${what}${why === undefined ? '' : ` (${why})`}.`)
}

/** What kept a request from being answered, or what was wrong with the answer. */
function whyOf(error: unknown): string | undefined {
  if (error instanceof OutboundError) return error.kind
  if (error instanceof Failure) return error.detail
  const { code } = Object(error) as { code?: unknown }
  return typeof code === 'string' && /^[A-Z_]{1,64}$/.test(code) ? code.toLowerCase() : undefined
}

/** A member that is text; undefined for anything else. */
export const textOf = (members: Claims, name: string): string | undefined => {
  const value = members[name]
  return typeof value === 'string' && value !== '' ? value : undefined
}
