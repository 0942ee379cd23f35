import { Failure, type Outbound, type OutboundResponse } from '../core/index.ts'
import { errorOf, readTokenResponse, type TokenResponse } from '../oauth/index.ts'
import { askAs, loginRefusal } from './server-calls.ts'
import type { LoginRecord } from './store.ts'

/** `ended`: there is no refresh token, or it is worth nothing any more; `client_unknown`: neither is the client that has it. */
type Renewal = { readonly kind: 'renewed'; readonly record: LoginRecord } | { readonly kind: LoginEnd }
type LoginEnd = 'ended' | 'client_unknown'

/**
 * The same login with a new access token (RFC 6749 §6), for the same resource. Throws `CredentialRefusal` when the server
 * can't say.
 */
export async function refreshed(record: LoginRecord, outbound: Outbound, nowMs: number): Promise<Renewal> {
  const { refresh_token: refresh, client, resource } = record
  if (refresh === undefined) return { kind: 'ended' }
  try {
    const form = { grant_type: 'refresh_token', refresh_token: refresh, resource }
    const response = await askAs(client, record.server.token_endpoint, form, outbound)
    const end = endIn(response)
    if (end !== undefined) return { kind: end }
    const { expires_at_ms: _old, ...rest } = record
    const asked = { url: record.server.token_endpoint, step: 'refresh', nowMs, askedScope: record.scope } as const
    return { kind: 'renewed', record: { ...rest, refresh_token: refresh, ...tokensOf(response, asked) } }
  } catch (error) {
    throw loginRefusal('the authorization server does not renew the token now', error)
  }
}

/** What was asked of the token endpoint. */
interface TokenRequest {
  readonly url: string
  readonly step: 'code' | 'refresh'
  /** When it was sent. */
  readonly nowMs: number
  readonly askedScope: string | undefined
}

/** What of an answer of the token endpoint is kept. Throws `Failure` for what is no such answer. */
export function tokensOf(
  response: OutboundResponse,
  { url, step, nowMs, askedScope }: TokenRequest,
): Pick<LoginRecord, 'access_token' | 'expires_at_ms' | 'refresh_token' | 'scope'> {
  const read: TokenResponse = readTokenResponse(response, { url, step, mapping: undefined, sentAtMs: nowMs, nowMs })
  const { accessToken, refreshToken, expiresAtMs, scopes } = read
  const granted = scopes?.join(' ') ?? askedScope
  return {
    access_token: accessToken.reveal(),
    ...(expiresAtMs === undefined ? {} : { expires_at_ms: expiresAtMs }),
    ...(refreshToken === undefined ? {} : { refresh_token: refreshToken.reveal() }),
    ...(granted === undefined || granted === '' ? {} : { scope: granted }),
  }
}

const ENDS: Readonly<Record<string, LoginEnd>> = {
  invalid_grant: 'ended',
  invalid_client: 'client_unknown',
  unauthorized_client: 'client_unknown',
}

/** Whether the authorization server says that the grant, or the client that has it, is nothing any more (RFC 6749 §5.2). */
const endIn = (response: OutboundResponse): LoginEnd | undefined => {
  const error = response.status < 500 ? errorOf(response) : undefined
  return error !== undefined && Object.hasOwn(ENDS, error) ? ENDS[error] : undefined
}

/**
 * Ends a login at the authorization server (RFC 7009): the refresh token, and with it what hangs on it, else the access
 * token. False where the server has no such endpoint. Throws `CredentialRefusal` when it did not do it.
 */
export async function revoke(record: LoginRecord, outbound: Outbound): Promise<boolean> {
  const { client, refresh_token: refresh, access_token: access } = record
  const { revocation_endpoint: endpoint } = record.server
  if (endpoint === undefined) return false
  /** Whether the server knows how to revoke such a token. */
  const end = async (token: string, hint: string): Promise<boolean> => {
    const response = await askAs(client, endpoint, { token, token_type_hint: hint }, outbound)
    if (response.status === 200) return true
    if (response.status < 500 && errorOf(response) === 'unsupported_token_type') return false
    throw new Failure('identity_provider_error', { detail: `revocation endpoint answered ${response.status}` })
  }
  try {
    const isRefreshEnded = refresh !== undefined && (await end(refresh, 'refresh_token'))
    // A server need not take back access tokens (RFC 7009 §2); they end by themselves.
    if (!(await end(access, 'access_token')) && !isRefreshEnded)
      throw new Failure('identity_provider_error', { detail: 'it revokes no such tokens' })
    return true
  } catch (error) {
    throw loginRefusal('the authorization server did not revoke the tokens', error)
  }
}
