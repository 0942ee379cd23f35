import { after, asFailure, Failure, monotonicNow, OutboundError, Secret } from '../core/index.ts'
import { jsonAnswer, readKeys, codeVerdict } from '../oauth/index.ts'
import type { UpstreamProvider } from '../resources/index.ts'
import { type Connections, createConnections, unanswered } from './connection.ts'
import type { UpstreamDeps } from './deps.ts'
import type { Upstream, UpstreamLeg, UpstreamTokenSet } from './upstream.ts'
import { createOidcDiscovery } from './discovery.ts'
import { userInfoOf } from './oauth2.ts'
import { createUpstream } from './upstreams.ts'
import { askUserInfo, type UserInfoRequest } from './user-info.ts'

/** Tests each step of a login at an upstream separately, with invalid credentials. */
export interface UpstreamProbe {
  /** Returns the redirect URL for users and the status of its response. Throws as `Upstream`. */
  authorize(): Promise<{ readonly url: URL; readonly status: number }>
  /**
   * Sends an invalid code to the token endpoint. `taken`: it knows the client and rejects the code; `unsaid`: it
   * rejects without saying which. Throws as `Upstream`, and `identity_provider_error` if the code is accepted.
   */
  client(): Promise<'taken' | 'unsaid'>
  /**
   * Sends a refresh token, by default an invalid one, with the configured scopes. Throws as `Upstream`; `no_session`
   * without rejection means that the new ID token belongs to another user.
   */
  refresh(refreshToken?: Secret): Promise<UpstreamTokenSet>
  /** Number of keys that may verify ID tokens; undefined for a type without ID tokens. Throws as `Upstream`. */
  keys(): Promise<number | undefined>
  /** The user-info endpoint, and its status for an invalid token; undefined when not used. Throws as `Upstream`. */
  userInfo(): Promise<{ readonly url: string; readonly status: number } | undefined>
  close(): Promise<void>
}

/** Milliseconds for a refresh. */
const REFRESH_MS = 10_000

/** Invalid by its length, and recognizable in the upstream's log. */
const NOBODYS = `extauth-check-${'0'.repeat(32)}`

/** Uses the upstream's own connections; `redirectUri` is its callback. */
export function probeUpstream(provider: UpstreamProvider, redirectUri: string, deps: UpstreamDeps): UpstreamProbe {
  const upstream = createUpstream(provider, deps)
  const { oidcConfig, oauth2Config } = provider
  const connections = createConnections(provider, configuredUrls(provider), deps)
  const discovery =
    oidcConfig === undefined
      ? undefined
      : createOidcDiscovery(oidcConfig.issuerUrl, { ...connections, clock: deps.clock, isMutualTls: false })
  const redirect = invalidRedirect(redirectUri)

  return {
    async authorize() {
      const url = await upstream.authorizationUrl(redirect)
      return { url, status: await statusOf(connections, url.href) }
    },
    async client() {
      return sendInvalidCode(upstream, redirect, oidcConfig?.issuerUrl)
    },
    async refresh(refreshToken = new Secret(NOBODYS)) {
      const { scopes = [] } = oidcConfig ?? oauth2Config ?? {}
      const none = { idToken: undefined, expiresAtMs: undefined, idTokenExpiresAtMs: undefined }
      const tokens = { accessToken: refreshToken, refreshToken, scopes, ...none }
      return (await upstream.refresh(tokens, NOBODYS, after(monotonicNow(), REFRESH_MS))).tokens
    },
    async keys() {
      if (discovery === undefined) return undefined
      const { jwksUri } = await discovery.metadata()
      return readKeys(jsonAnswer(await connections.documents.get(jwksUri, 'key set'), 'key set')).length
    },
    async userInfo() {
      const found = (await discovery?.metadata())?.userInfoEndpoint
      const request: UserInfoRequest | undefined =
        (oauth2Config === undefined ? undefined : userInfoOf(oauth2Config)) ??
        oidcConfig?.userInfoOverride ??
        (found === undefined ? undefined : { endpointUrl: found })
      if (request === undefined) return undefined
      const { status } = await askUserInfo(request, new Secret(NOBODYS), connections)
      return { url: request.endpointUrl, status }
    },
    close: async () => {
      await Promise.all([upstream.close(), connections.close()])
    },
  }
}

/** The configured URLs, which the address guard allows (decisions §2.6). */
function configuredUrls({ oidcConfig, oauth2Config }: UpstreamProvider): string[] {
  const urls = [
    oidcConfig?.issuerUrl,
    oidcConfig?.userInfoOverride?.endpointUrl,
    oauth2Config?.authorizationEndpoint,
    oauth2Config?.tokenEndpoint,
    oauth2Config === undefined ? undefined : userInfoOf(oauth2Config)?.endpointUrl,
  ]
  return urls.filter((url) => url !== undefined)
}

/** A login that no user began. */
export const invalidRedirect = (redirectUri: string): UpstreamLeg => ({
  state: NOBODYS,
  nonce: NOBODYS,
  codeVerifier: new Secret(NOBODYS),
  redirectUri,
})

/** `UpstreamProbe.client`; `issuer` goes into the callback. */
export async function sendInvalidCode(
  upstream: Upstream,
  redirect: UpstreamLeg,
  issuer: string | undefined,
): ReturnType<UpstreamProbe['client']> {
  const came = new URLSearchParams({ code: NOBODYS })
  if (issuer !== undefined) came.set('iss', issuer)
  try {
    await upstream.finish(redirect, came)
  } catch (error) {
    const verdict = codeVerdict(asFailure(error))
    if (verdict === undefined) throw error
    return verdict
  }
  throw new Failure('identity_provider_error', { detail: 'token endpoint: it accepted an invalid code' })
}

/** The status of a browser page of any size. */
export async function statusOf({ pages }: Connections, url: string): Promise<number> {
  try {
    return (await pages.request({ method: 'GET', url, headers: { accept: 'text/html' } })).status
  } catch (error) {
    if (error instanceof OutboundError && error.kind === 'too_large') return 200
    throw unanswered(error, 'authorization endpoint')
  }
}
