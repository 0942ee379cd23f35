import {
  type Claims,
  CredentialRefusal,
  Failure,
  type Outbound,
  OutboundError,
  type OutboundResponse,
  Secret,
  type SecretHandle,
} from '../core/index.ts'
import { askTokenEndpoint, type ClientSettings, createClientAuthentication, isSafeUrl } from '../oauth/index.ts'
import type { LoginRecord } from './store.ts'

/** A handle of an unchanging secret. */
const fixed = (value: string): SecretHandle => {
  const secret = new Secret(value)
  return { label: 'client secret', version: 1, current: () => secret, refresh: () => Promise.resolve(false) }
}

/**
 * Posts a form to an endpoint of the authorization server as the client of a login (RFC 6749 §2.3): with Basic, with
 * id and secret in the body, or with `client_id` alone, as registered. A response with any status is returned. Throws
 * `OutboundError`, and `CredentialRefusal` for an unsafe URL.
 */
export async function askAs(
  client: LoginRecord['client'],
  url: string,
  form: readonly (readonly [string, string])[],
  outbound: Outbound,
): Promise<OutboundResponse> {
  if (!isSafeUrl(url)) throw loginRefusal('an endpoint of the authorization server has no https URL')
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
 * A failed login or refresh, as a message for the user: `what` continues "The login failed: …". It holds no external
 * text: details name only known error codes.
 */
export function loginRefusal(what: string, error?: unknown): CredentialRefusal {
  const why = error === undefined ? undefined : whyOf(error)
  return new CredentialRefusal('login_failed', `The login failed: ${what}${why === undefined ? '' : ` (${why})`}.`)
}

/** Why a request failed, or what is wrong with its response. */
function whyOf(error: unknown): string | undefined {
  if (error instanceof OutboundError) return error.kind
  if (error instanceof Failure) return error.detail
  const { code } = Object(error) as { code?: unknown }
  return typeof code === 'string' && /^[A-Z_]{1,64}$/.test(code) ? code.toLowerCase() : undefined
}

/** A string field; undefined for anything else. */
export const textOf = (members: Claims, name: string): string | undefined => {
  const value = members[name]
  return typeof value === 'string' && value !== '' ? value : undefined
}
