import { type EpochMs, Failure, type Outbound, type OutboundResponse, Secret } from '../core/index.ts'
import {
  CODE_GRANT,
  errorOf,
  grantedScopes,
  postRefresh,
  readTokenResponse,
  REFRESH_GRANT,
  scopesIn,
  serviceOf,
} from '../oauth/index.ts'
import { askAs, loginRefusal } from './server-calls.ts'
import type { LoginRecord } from './store.ts'

/** `ended`: only a new login helps; `isClientKnown` if the server has shown that it knows the client. */
type Renewal =
  | { readonly kind: 'renewed'; readonly record: LoginRecord }
  | { readonly kind: 'ended'; readonly isClientKnown: boolean }

/**
 * Refreshes the access token (RFC 6749 §6) for the same resource. A 4xx status except 408 and 429 means that only a
 * new login helps. Throws `CredentialRefusal` for an outage.
 */
export async function refreshed(record: LoginRecord, outbound: Outbound, now: () => EpochMs): Promise<Renewal> {
  const { refresh_token: refresh, client, resource } = record
  if (refresh === undefined) return { kind: 'ended', isClientKnown: false }
  try {
    const sentAtMs = now()
    const url = record.server.token_endpoint
    const scopes = scopesIn(record.scope)
    const response = await postRefresh((form) => askAs(client, url, form, outbound), new Secret(refresh), scopes, [
      ['resource', resource],
    ])
    if (isRefused(response)) return endedBy(errorOf(response))
    const { expires_at_ms: _old, ...rest } = record
    const times = { sentAtMs, nowMs: now() }
    const tokens = tokensOf(response, { url, ...times, grant: 'refresh', requested: scopes })
    return { kind: 'renewed', record: { ...rest, refresh_token: refresh, ...tokens } }
  } catch (error) {
    if (error instanceof Failure && error.refusal !== undefined && error.code !== 'identity_provider_unavailable')
      return endedBy(error.refusal.error)
    throw loginRefusal('the token refresh failed', error)
  }
}

const isRefused = ({ status }: OutboundResponse): boolean =>
  status >= 400 && status < 500 && status !== 408 && status !== 429

/** Errors about the grant; an unknown client is rejected before. */
const ABOUT_GRANT: ReadonlySet<string | undefined> = new Set(['invalid_grant', 'invalid_token'])
const endedBy = (error: string | undefined): Renewal => ({ kind: 'ended', isClientKnown: ABOUT_GRANT.has(error) })

const GRANTS = { code: CODE_GRANT, refresh: REFRESH_GRANT }
const SERVICE = serviceOf('token endpoint')

/** A request to the token endpoint. */
interface TokenRequest {
  readonly url: string
  readonly grant: keyof typeof GRANTS
  readonly sentAtMs: EpochMs
  readonly nowMs: EpochMs
  readonly requested: readonly string[]
}

/** The stored part of a token response. Throws `Failure` for any other response. */
export function tokensOf(
  response: OutboundResponse,
  { url, grant, sentAtMs, nowMs, requested }: TokenRequest,
): Pick<LoginRecord, 'access_token' | 'expires_at_ms' | 'refresh_token' | 'scope'> {
  const context = { url, sentAtMs, nowMs, service: SERVICE, grant: GRANTS[grant] }
  const read = readTokenResponse(response, context)
  const { accessToken, refreshToken, expiresAtMs } = read
  const granted = grantedScopes(read, requested).join(' ')
  return {
    access_token: accessToken.reveal(),
    ...(expiresAtMs === undefined ? {} : { expires_at_ms: expiresAtMs }),
    ...(refreshToken === undefined ? {} : { refresh_token: refreshToken.reveal() }),
    ...(granted === '' ? {} : { scope: granted }),
  }
}

/**
 * Revokes a login at the authorization server (RFC 7009): the refresh token and everything issued with it, else the
 * access token. False when the server has no such endpoint. Throws `CredentialRefusal` when revocation failed.
 */
export async function revoke(record: LoginRecord, outbound: Outbound): Promise<boolean> {
  const { client, refresh_token: refresh, access_token: access } = record
  const { revocation_endpoint: endpoint } = record.server
  if (endpoint === undefined) return false
  /** Whether the server supports revocation of such a token. */
  const end = async (token: string, hint: string): Promise<boolean> => {
    const form = [['token', token] as const, ['token_type_hint', hint] as const]
    const response = await askAs(client, endpoint, form, outbound)
    if (response.status === 200) return true
    if (response.status < 500 && errorOf(response) === 'unsupported_token_type') return false
    throw new Failure('identity_provider_error', { detail: `revocation endpoint answered ${response.status}` })
  }
  try {
    const isRefreshEnded = refresh !== undefined && (await end(refresh, 'refresh_token'))
    // A server may not support revoking access tokens (RFC 7009 §2); they expire on their own.
    if (!(await end(access, 'access_token')) && !isRefreshEnded)
      throw new Failure('identity_provider_error', { detail: 'this token type cannot be revoked' })
    return true
  } catch (error) {
    throw loginRefusal('the authorization server did not revoke the tokens', error)
  }
}
