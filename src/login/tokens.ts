import * as oauth from 'oauth4webapi'
import type { Outbound } from '../core/index.ts'
import { authenticationOf, tokensOf } from './login.ts'
import { callOptions, isInvalidGrant, loginRefusal } from './server-calls.ts'
import type { LoginRecord } from './store.ts'

const serverOf = ({ issuer, server }: LoginRecord): oauth.AuthorizationServer => ({
  issuer,
  token_endpoint: server.token_endpoint,
  ...(server.revocation_endpoint === undefined ? {} : { revocation_endpoint: server.revocation_endpoint }),
})

/**
 * The same login with a new access token (RFC 6749 §6), for the same resource. Undefined when there is no refresh token,
 * or it is worth nothing any more. Throws `CredentialRefusal` when the server can't say.
 */
export async function refreshed(
  record: LoginRecord,
  outbound: Outbound,
  nowMs: number,
): Promise<LoginRecord | undefined> {
  const { refresh_token: refresh, client, resource } = record
  if (refresh === undefined) return undefined
  const server = serverOf(record)
  try {
    const response = await oauth.refreshTokenGrantRequest(server, client, authenticationOf(client), refresh, {
      ...callOptions(outbound, record.server.token_endpoint),
      additionalParameters: { resource },
    })
    const tokens = await oauth.processRefreshTokenResponse(server, client, response)
    const { expires_at_ms: _old, ...rest } = record
    return { ...rest, refresh_token: refresh, ...tokensOf(tokens, nowMs, record.scope) }
  } catch (error) {
    if (isInvalidGrant(error)) return undefined
    throw loginRefusal('the authorization server does not renew the token now', error)
  }
}

/**
 * Ends a login at the authorization server (RFC 7009): the refresh token, and with it what hangs on it, else the access
 * token. False where the server has no such endpoint. Throws `CredentialRefusal` when it did not do it.
 */
export async function revoke(record: LoginRecord, outbound: Outbound): Promise<boolean> {
  const { client, refresh_token: refresh, access_token: access } = record
  const { revocation_endpoint: endpoint } = record.server
  if (endpoint === undefined) return false
  const options = callOptions(outbound, endpoint)
  const end = async (token: string, hint: string): Promise<void> => {
    const response = await oauth.revocationRequest(serverOf(record), client, authenticationOf(client), token, {
      ...options,
      additionalParameters: { token_type_hint: hint },
    })
    await oauth.processRevocationResponse(response)
  }
  try {
    if (refresh !== undefined) await end(refresh, 'refresh_token')
    // A server need not take back access tokens (RFC 7009 §2); they end by themselves.
    await end(access, 'access_token').catch((error: unknown) => {
      if (refresh === undefined && !isUnsupported(error)) throw error
    })
    return true
  } catch (error) {
    throw loginRefusal('the authorization server did not revoke the tokens', error)
  }
}

const isUnsupported = (error: unknown): boolean =>
  error instanceof oauth.ResponseBodyError && error.error === 'unsupported_token_type'
