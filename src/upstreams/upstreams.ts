import { Failure } from '../core/index.ts'
import type { UpstreamProvider, UserInfo } from '../resources/index.ts'
import type { UpstreamDeps } from './deps.ts'
import { createOAuth2Upstream } from './oauth2.ts'
import { createOidcUpstream } from './oidc.ts'
import type { Upstream } from './upstream.ts'

/** Header names (RFC 9110 §5.1) that are not connection-specific, and valid header values. */
const HEADER_NAME =
  /^(?!(?:host|connection|content-length|transfer-encoding|upgrade|te|trailer)$)[!#$%&'*+.^_`|~0-9a-z-]+$/i
const HEADER_VALUE = /^[\t\x20-\x7e]*$/

function checkHeaders(name: string, headers: UserInfo['additionalHeaders'] = {}): void {
  const wrong = Object.entries(headers).find(
    ([header, value]) => !HEADER_NAME.test(header) || !HEADER_VALUE.test(value),
  )
  if (wrong === undefined) return
  throw new Failure('config_error', {
    detail: `upstream ${name}: ${JSON.stringify(wrong[0])} in additionalHeaders is not a valid header`,
  })
}

/**
 * Creates the upstream of an entry of `upstreamProviders`. Throws `config_error` for an entry without the settings of
 * its type, and for invalid additional headers.
 */
export function createUpstream(provider: UpstreamProvider, deps: UpstreamDeps): Upstream {
  const { oidcConfig, oauth2Config } = provider
  checkHeaders(provider.name, (oidcConfig?.userInfoOverride ?? oauth2Config?.userInfo)?.additionalHeaders)
  if (provider.type === 'oidc' && oidcConfig !== undefined) return createOidcUpstream(provider, oidcConfig, deps)
  if (provider.type === 'oauth2' && oauth2Config !== undefined)
    return createOAuth2Upstream(provider, oauth2Config, deps)
  throw new Failure('config_error', { detail: `upstream ${provider.name} has no settings for its type` })
}
