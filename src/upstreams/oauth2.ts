import { randomUUID } from 'node:crypto'
import { Failure, NO_CLAIMS } from '../core/index.ts'
import { grantedScopes, readCallback, type TokenResponse } from '../oauth/index.ts'
import type { OAuth2Config, UpstreamProvider, UserInfo } from '../resources/index.ts'
import { authorizationUrl, codeForm, requestedScopes } from './authorization-url.ts'
import { type Connections, createConnections, unusable } from './connection.ts'
import type { UpstreamDeps } from './deps.ts'
import { createRegisteredClient } from './registered-client.ts'
import { createTokenEndpoint } from './token-endpoint.ts'
import type { Upstream, UpstreamTokenSet } from './upstream.ts'
import { createConfiguredClient, type ShownCertificate, type UpstreamClient } from './upstream-client.ts'
import { acceptsToken, fetchUserInfo } from './user-info.ts'

/** The user of an upstream without user information: a new identity for each login. */
const synthesizedIdentity = () => ({ subject: `synthesized-${randomUUID()}`, claims: NO_CLAIMS })

/** The user-info request; undefined when the token response identifies the user. */
export const userInfoOf = ({ identityFromToken, userInfo }: OAuth2Config): UserInfo | undefined =>
  identityFromToken === undefined ? userInfo : undefined

/** Tokens missing from a response are kept. Without ID token, which could not be verified here. */
export const tokensWithoutId = (
  read: TokenResponse,
  before: Pick<UpstreamTokenSet, 'refreshToken' | 'scopes'>,
): UpstreamTokenSet => ({
  accessToken: read.accessToken,
  refreshToken: read.refreshToken ?? before.refreshToken,
  idToken: undefined,
  expiresAtMs: read.expiresAtMs,
  idTokenExpiresAtMs: undefined,
  scopes: grantedScopes(read, before.scopes),
})

/** The proxy's client at the upstream, and its connections. */
function connect(
  name: string,
  config: OAuth2Config,
  deps: UpstreamDeps,
  open: (certificate?: ShownCertificate) => Connections,
): { readonly client: UpstreamClient; readonly connections: Connections } {
  const { dcrConfig: registration, scopes = [] } = config
  if (registration === undefined) {
    const client = createConfiguredClient(name, config, deps)
    return { client, connections: open(client.certificate) }
  }
  const connections = open()
  return { client: createRegisteredClient({ registration, scopes, name }, connections, deps), connections }
}

/** An upstream of type `oauth2`: endpoints from the configuration, identity from its user-info endpoint or from its token endpoint. */
export function createOAuth2Upstream(provider: UpstreamProvider, config: OAuth2Config, deps: UpstreamDeps): Upstream {
  const { name } = provider
  const { authorizationEndpoint, tokenEndpoint, scopes = [] } = config
  const userInfo = userInfoOf(config)
  const identityProvider = userInfo?.endpointUrl ?? tokenEndpoint
  const { discoveryUrl, registrationEndpoint } = config.dcrConfig ?? {}
  const configured = [tokenEndpoint, identityProvider, discoveryUrl, registrationEndpoint]
  const urls = [...new Set(configured.filter((url) => url !== undefined))]
  const { client, connections } = connect(name, config, deps, (certificate) =>
    createConnections(provider, urls, deps, certificate),
  )
  const ask = createTokenEndpoint(client, config, connections, deps)

  return {
    name,
    identityProvider,
    authorizationUrl: async (redirect) =>
      authorizationUrl(redirect, {
        endpoint: authorizationEndpoint,
        clientId: (await client.current()).clientId,
        scopes: requestedScopes(scopes, redirect),
        nonce: undefined,
        additional: config.additionalAuthorizationParams,
      }),
    async finish(redirect, callback) {
      const code = readCallback(callback, { issuer: undefined, announcesIss: false })
      const read = await ask({ url: tokenEndpoint, step: 'code', form: codeForm(code, redirect) })
      const { subject, claims } =
        read.identity ??
        (userInfo === undefined
          ? synthesizedIdentity()
          : await fetchUserInfo(userInfo, read.accessToken, connections, deps.clock))
      if (subject === undefined) throw unusable('user-info endpoint: no subject field has a value')
      return {
        tokens: tokensWithoutId(read, { refreshToken: undefined, scopes: requestedScopes(scopes, redirect) }),
        subject,
        claims,
      }
    },
    async refresh(tokens, subject, endsAtMs) {
      const { refreshToken } = tokens
      if (refreshToken === undefined) throw new Failure('no_session', { detail: `${name} issued no refresh token` })
      const read = await ask({ url: tokenEndpoint, step: 'refresh', refreshToken, scopes: tokens.scopes, endsAtMs })
      return { tokens: tokensWithoutId(read, tokens), subject, claims: NO_CLAIMS }
    },
    ...(userInfo === undefined
      ? {}
      : { accepts: ({ accessToken }: UpstreamTokenSet) => acceptsToken(userInfo, accessToken, connections) }),
    close: () => connections.close(),
  }
}
