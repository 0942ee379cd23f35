import { Failure } from '../../core/index.ts'
import type { UpstreamProvider } from '../../resources/index.ts'
import type { UpstreamDeps } from './deps.ts'
import { createOAuth2Upstream } from './oauth2.ts'
import { createOidcUpstream } from './oidc.ts'
import type { Upstream } from './upstream.ts'

/** The upstream of one entry of `upstreamProviders`. Throws `config_error` for an entry without the settings of its type. */
export function createUpstream(provider: UpstreamProvider, deps: UpstreamDeps): Upstream {
  const { oidcConfig, oauth2Config } = provider
  if (provider.type === 'oidc' && oidcConfig !== undefined) return createOidcUpstream(provider, oidcConfig, deps)
  if (provider.type === 'oauth2' && oauth2Config !== undefined)
    return createOAuth2Upstream(provider, oauth2Config, deps)
  throw new Failure('config_error', { detail: `upstream ${provider.name} has no settings for its type` })
}
