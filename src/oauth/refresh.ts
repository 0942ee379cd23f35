import type { OutboundResponse, Secret } from '../core/index.ts'
import { errorOf } from './refusals.ts'

type Form = readonly (readonly [name: string, value: string])[]

/** Errors of servers that reject `scope` in a refresh (Salesforce), or in a form other than they granted. */
const ABOUT_SCOPE: ReadonlySet<string | undefined> = new Set(['invalid_scope', 'invalid_request'])

/**
 * Sends a refresh request (RFC 6749 §6) with the granted scopes: Entra ID requires `scope`, and elsewhere the default
 * may differ. A server that rejects the scopes gets one more request without them, for the same grant.
 */
export async function postRefresh(
  post: (form: Form) => Promise<OutboundResponse>,
  refreshToken: Secret,
  scopes: readonly string[],
  more: Form = [],
): Promise<OutboundResponse> {
  const form: Form = [['grant_type', 'refresh_token'], ['refresh_token', refreshToken.reveal()], ...more]
  if (scopes.length === 0) return post(form)
  const response = await post([...form, ['scope', scopes.join(' ')]])
  return response.status < 500 && ABOUT_SCOPE.has(errorOf(response)) ? post(form) : response
}

/** The scopes of a `scope` value, without duplicates. Clients send empty ones, as `%20offline_access` (Claude.ai). */
export const scopesIn = (scope: string | undefined): readonly string[] => [
  ...new Set(scope?.split(' ').filter((one) => one !== '')),
]

/** OpenID Connect Core §5.4, §11. */
const OPENID_SCOPES: ReadonlySet<string> = new Set(['openid', 'profile', 'email', 'address', 'phone', 'offline_access'])

/**
 * The granted scopes: those of the response, else those requested. Entra ID lists only scopes of the access token: a
 * refresh token implies `offline_access`, and an ID token implies `openid` and related scopes.
 */
export function grantedScopes(
  response: { readonly [K in 'scopes' | 'idToken' | 'refreshToken']: unknown } & {
    readonly scopes: readonly string[] | undefined
  },
  requested: readonly string[],
): readonly string[] {
  const { scopes, idToken, refreshToken } = response
  if (scopes === undefined) return requested
  const isOpenidUnsaid = idToken !== undefined && !scopes.includes('openid')
  const unsaid = requested.filter((scope) =>
    scope === 'offline_access' ? refreshToken !== undefined : isOpenidUnsaid && OPENID_SCOPES.has(scope),
  )
  return [...new Set([...scopes, ...unsaid])]
}
