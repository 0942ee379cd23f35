import type { OutboundResponse, Secret } from '../core/index.ts'
import { errorOf } from './refusals.ts'

type Form = readonly (readonly [name: string, value: string])[]

/** What servers answer that take no `scope` at a refresh (Salesforce), or not in the form in which they granted it. */
const ABOUT_SCOPE: ReadonlySet<string | undefined> = new Set(['invalid_scope', 'invalid_request'])

/**
 * Sends a refresh request (RFC 6749 §6) with the scopes that were granted: Entra ID refuses one without `scope`, and elsewhere the
 * default may be another. A server that refuses the scopes is asked once more without them, which means the same grant.
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

/** The scopes of a `scope` value, each once: clients send empty ones, as `%20offline_access` (Claude.ai). */
export const scopesIn = (scope: string | undefined): readonly string[] => [
  ...new Set(scope?.split(' ').filter((one) => one !== '')),
]

/** OpenID Connect Core §5.4, §11. */
const OPENID_SCOPES: ReadonlySet<string> = new Set(['openid', 'profile', 'email', 'address', 'phone', 'offline_access'])

/**
 * The scopes of a grant: those of the response, else what was requested. Entra ID leaves out of `scope` what is not of the access
 * token: `offline_access` was granted where a refresh token came, and the scopes of OpenID Connect where an ID token came that
 * `openid` is not named for.
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
