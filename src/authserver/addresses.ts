import { Failure } from '../core/index.ts'
import { FORM_POST, upstreamsInOrder } from '../resources/index.ts'
import type { AuthServerConfig } from './config.ts'

/** An upstream's redirect URI, and the pages of that login. */
export interface Callback {
  /** `redirect_uri` as registered at the upstream. */
  readonly url: string
  readonly origin: string
  readonly path: string
  /** Path beside it, on the same origin because of cookies: shows the consent page and receives its form. */
  readonly continueUrl: string
  readonly continuePath: string
  /** An upstream posts its response there (`response_mode=form_post`). */
  readonly takesForms: boolean
}

/** An upstream in the login chain of a resource. */
export interface ChainLink {
  readonly provider: string
  readonly callback: Callback
}

/** All addresses of a server, computed once. */
export interface Addresses {
  readonly issuer: string
  readonly jwksUrl: string
  readonly authorizeUrl: string
  readonly tokenUrl: string
  readonly registerUrl: string
  readonly revokeUrl: string
  /** Raw paths at which `authorize` is served: the issuer's, and the advertised one. */
  readonly authorizePaths: readonly string[]
  /** The paths of RFC 8414 §3.1. */
  readonly metadataPaths: readonly string[]
  /** The paths of OpenID Connect Discovery §4.1, in both forms for an issuer with a path. */
  readonly openidPaths: readonly string[]
  readonly jwksPath: string
  /** All callbacks, without duplicates. */
  readonly callbacks: readonly Callback[]
  /**
   * The upstreams that a login for this resource (as configured) visits, in order; the first one identifies the user.
   */
  chainOf(resourceUrl: string): readonly ChainLink[]
  /** The upstream that identifies users, with a callback on this origin if there is one; undefined without resources. */
  identityLink(origin: string): ChainLink | undefined
  /** Redirect URIs of this upstream, in code unit order, without duplicates. */
  redirectUrisOf(upstream: string): readonly string[]
}

/**
 * Computes the addresses of a server (authserver.md §2, §3). Throws `config_error` when the callbacks of one chain
 * are on different origins: the browser's cookie could not follow.
 */
export function addressesOf({ spec, resources }: AuthServerConfig): Addresses {
  const { issuer } = spec
  const root = new URL(issuer)
  const path = root.pathname === '/' ? '' : root.pathname
  const authorizeUrl = `${spec.authorizationEndpointBaseUrl ?? issuer}/oauth/authorize`
  const own = callbackOf(`${issuer}/oauth/callback`)
  const chains = new Map<string, readonly ChainLink[]>()
  for (const resource of resources) chains.set(resource.url, chainFor(spec, resource))
  const callbacks = new Map([[own.url, own]])
  for (const { callback } of [...chains.values()].flat()) {
    const takesForms = callback.takesForms || callbacks.get(callback.url)?.takesForms === true
    callbacks.set(callback.url, { ...callback, takesForms })
  }
  return {
    issuer,
    jwksUrl: `${issuer}/.well-known/jwks.json`,
    authorizeUrl,
    tokenUrl: `${issuer}/oauth/token`,
    registerUrl: `${issuer}/oauth/register`,
    revokeUrl: `${issuer}/oauth/revoke`,
    authorizePaths: unique([`${path}/oauth/authorize`, new URL(authorizeUrl).pathname]),
    metadataPaths: [`/.well-known/oauth-authorization-server${path}`],
    openidPaths: unique([`${path}/.well-known/openid-configuration`, `/.well-known/openid-configuration${path}`]),
    jwksPath: `${path}/.well-known/jwks.json`,
    callbacks: [...callbacks.values()],
    chainOf: (resourceUrl) => chains.get(resourceUrl) ?? [],
    identityLink(origin) {
      const first = [...chains.values()].flatMap(([link]) => link ?? [])
      return first.find(({ callback }) => callback.origin === origin) ?? first[0]
    },
    redirectUrisOf(upstream) {
      const links = [...chains.values()].flat().filter(({ provider }) => provider === upstream)
      return unique(links.map(({ callback }) => callback.url).sort())
    },
  }
}

type Spec = AuthServerConfig['spec']

function chainFor(spec: Spec, resource: AuthServerConfig['resources'][number]): readonly ChainLink[] {
  const chain = upstreamsInOrder(spec)
    .filter(({ name }, index) => index === 0 || resource.providers.includes(name))
    .map((provider) => {
      const { redirectUri, additionalAuthorizationParams = {} } = provider.oidcConfig ?? provider.oauth2Config ?? {}
      const takesForms = additionalAuthorizationParams['response_mode'] === FORM_POST
      return {
        provider: provider.name,
        callback: callbackOf(redirectUri ?? defaultRedirectUri(resource.url), takesForms),
      }
    })
  if (new Set(chain.map(({ callback }) => callback.origin)).size > 1)
    throw new Failure('config_error', {
      detail: `the redirect URIs of the upstreams for ${resource.url} are on different origins; one login needs one origin`,
    })
  return chain
}

/** `{resourceUrl}/oauth/callback`, one trailing slash removed (specification, `redirectUri`). */
export function defaultRedirectUri(resourceUrl: string): string {
  const { origin, pathname } = new URL(resourceUrl)
  return `${origin}${pathname.replace(/\/$/, '')}/oauth/callback`
}

function callbackOf(url: string, takesForms = false): Callback {
  const { origin, pathname } = new URL(url)
  const continuePath = `${pathname.slice(0, pathname.lastIndexOf('/'))}/continue`
  return { url, origin, path: pathname, continueUrl: `${origin}${continuePath}`, continuePath, takesForms }
}

const unique = (texts: readonly string[]): readonly string[] => [...new Set(texts)]
