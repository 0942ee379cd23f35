import {
  asFailure,
  type Claims,
  type ClaimValue,
  Failure,
  type FailureCode,
  type MonotonicMs,
  NO_CLAIMS,
} from '../core/index.ts'
import { clockTolerance, createKeyStore, grantedScopes, readCallback, type TokenResponse } from '../oauth/index.ts'
import type { OidcConfig, UpstreamProvider } from '../resources/index.ts'
import { authorizationUrl, codeForm, requestedScopes } from './authorization-url.ts'
import { createConnections, inTime, unusable } from './connection.ts'
import type { UpstreamDeps } from './deps.ts'
import { createOidcDiscovery, type OidcMetadata } from './discovery.ts'
import { verifyIdToken, type VerifiedIdToken } from './id-token.ts'
import { noteKeys } from './key-notes.ts'
import { createRevocation } from './revocation.ts'
import { createTokenEndpoint, type TokenEndpointAt, type UpstreamGrant } from './token-endpoint.ts'
import type { Upstream, UpstreamTokenSet } from './upstream.ts'
import { createConfiguredClient } from './upstream-client.ts'
import { acceptsToken, fetchUserInfo, type UserInfoRequest } from './user-info.ts'

const DISCOVERY = 'discovery document'
/** Failures that a moved token endpoint may cause, among others. */
const MAY_HAVE_MOVED: ReadonlySet<FailureCode> = new Set([
  'config_error',
  'identity_provider_error',
  'identity_provider_unavailable',
])

type Kept = Pick<UpstreamTokenSet, 'refreshToken' | 'idToken' | 'idTokenExpiresAtMs' | 'scopes'>

/** Tokens missing from a response are kept; an ID token is kept only if verified. */
function tokensOf(read: TokenResponse, verified: VerifiedIdToken | undefined, before: Kept): UpstreamTokenSet {
  return {
    accessToken: read.accessToken,
    refreshToken: read.refreshToken ?? before.refreshToken,
    idToken: verified === undefined ? before.idToken : read.idToken,
    expiresAtMs: read.expiresAtMs,
    idTokenExpiresAtMs: verified === undefined ? before.idTokenExpiresAtMs : verified.expiresAtMs,
    scopes: grantedScopes(read, before.scopes),
  }
}

const isMissing = (value: ClaimValue | undefined) => typeof value !== 'string' || value === ''

/** The signed claims of the ID token take precedence over those of user info. */
function merge(signed: Claims, userInfo: Claims): Claims {
  const merged = Object.assign(Object.create(null) as Record<string, ClaimValue>, userInfo, signed)
  // It refers to the other address.
  if (signed['email_verified'] === undefined && merged['email'] !== userInfo['email']) delete merged['email_verified']
  return Object.freeze(merged)
}

/** An upstream of type `oidc` (OpenID Connect Core §3.1, §12; authserver.md §4.4). */
export function createOidcUpstream(provider: UpstreamProvider, config: OidcConfig, deps: UpstreamDeps): Upstream {
  const { name } = provider
  const { issuerUrl: issuer, scopes, userInfoOverride } = config
  const tolerance = clockTolerance(config.toleranceSeconds)
  const subjectClaim = config.subjectClaim || 'sub'
  const { clock, log } = deps
  const configured = userInfoOverride === undefined ? [issuer] : [issuer, userInfoOverride.endpointUrl]
  const client = createConfiguredClient(name, config, deps)
  const { clientId, certificate } = client
  const connections = createConnections(provider, configured, deps, certificate)
  const { documents } = connections
  const isMutualTls = certificate !== undefined
  const { metadata: discover, forget, moved } = createOidcDiscovery(issuer, { documents, clock, isMutualTls })
  const keys = createKeyStore({
    clock,
    documents,
    location: { jwksUri: async () => (await discover()).jwksUri, forget },
    onFetched: noteKeys({ upstream: name }, 'ID tokens', log),
  })
  const revoke = createRevocation(client, connections, deps)
  const askToken = createTokenEndpoint(client, {}, connections, deps)
  /** Repeats the request once if the token endpoint has moved. */
  const ask = async (metadata: OidcMetadata, grantAt: (endpoint: TokenEndpointAt) => UpstreamGrant) => {
    const at = ({ tokenEndpoint: url, secretInBody }: OidcMetadata) => askToken(grantAt({ url, issuer, secretInBody }))
    try {
      return await at(metadata)
    } catch (error) {
      const another = MAY_HAVE_MOVED.has(asFailure(error).code) ? await moved(metadata) : undefined
      if (another === undefined || another.tokenEndpoint === metadata.tokenEndpoint) throw error
      return at(another)
    }
  }

  const verify = async (read: TokenResponse, metadata: OidcMetadata, nonce: string | undefined) => {
    const { idToken, accessToken } = read
    if (idToken === undefined) throw unusable('token endpoint: the response has no id_token')
    const { algorithms } = metadata
    const nowMs = clock.now()
    const rules = { issuer, clientId, nonce, accessToken, algorithms, nowMs, tolerance, subjectClaim }
    return verifyIdToken(idToken, keys, rules)
  }

  const leaveOut = (what: string) => (error: unknown) => {
    const { code, detail } = asFailure(error)
    log.warn({ upstream: name, reason: code, detail }, what)
  }

  const userInfoRequest = ({ userInfoEndpoint }: OidcMetadata): UserInfoRequest | undefined =>
    userInfoOverride ?? (userInfoEndpoint === undefined ? undefined : { endpointUrl: userInfoEndpoint })

  /**
   * The ID token's claims; without name or e-mail, completed from user info. The ID token alone identifies the user,
   * so a failing user-info request is ignored: it rejects access tokens for another audience (a resource, as at Entra
   * ID).
   */
  const claimsOf = async ({ sub, claims }: VerifiedIdToken, read: TokenResponse, metadata: OidcMetadata) => {
    const request = userInfoRequest(metadata)
    if (request === undefined || !(isMissing(claims['name']) || isMissing(claims['email']))) return claims
    const answer = await fetchUserInfo(request, read.accessToken, connections, clock).catch(
      leaveOut('user info unavailable, omitted'),
    )
    if (answer === undefined) return claims
    // §5.3.2: otherwise it may describe another user.
    if (answer.subject !== sub) throw unusable('user-info endpoint: sub differs from the ID token')
    return merge(claims, answer.claims)
  }

  /**
   * The old tokens may already be used, so a failure must not lose the new ones: an invalid ID token is omitted. An ID
   * token of another user revokes the session.
   */
  const renewed = async (read: TokenResponse, subject: string, tokens: UpstreamTokenSet, endsAtMs: MonotonicMs) => {
    if (read.idToken === undefined) return { tokens: tokensOf(read, undefined, tokens), subject, claims: NO_CLAIMS }
    let verified: VerifiedIdToken
    let metadata: OidcMetadata
    try {
      metadata = await inTime(discover(), endsAtMs, DISCOVERY)
      verified = await inTime(verify(read, metadata, undefined), endsAtMs, 'key set')
    } catch (error) {
      leaveOut('the ID token of a refresh is left out')(error)
      return { tokens: tokensOf(read, undefined, tokens), subject, claims: NO_CLAIMS }
    }
    if (verified.subject !== subject)
      throw new Failure('no_session', { detail: 'the refreshed ID token is of another user' })
    const pending = inTime(claimsOf(verified, read, metadata), endsAtMs, 'user-info endpoint')
    const claims = await pending.catch(leaveOut('user info is left out at a refresh'))
    return { tokens: tokensOf(read, verified, tokens), subject, claims: claims ?? verified.claims }
  }

  return {
    name,
    identityProvider: issuer,
    async authorizationUrl(redirect) {
      const { authorizationEndpoint } = await discover()
      const additional = config.additionalAuthorizationParams
      return authorizationUrl(redirect, {
        endpoint: authorizationEndpoint,
        clientId,
        scopes: requestedScopes(scopes, redirect),
        nonce: redirect.nonce,
        additional,
      })
    },
    async finish(redirect, callback) {
      const metadata = await discover()
      const code = readCallback(callback, { issuer, announcesIss: metadata.announcesIss })
      const read = await ask(metadata, (at) => ({ ...at, step: 'code', form: codeForm(code, redirect) }))
      const verified = await verify(read, metadata, redirect.nonce)
      const claims = await claimsOf(verified, read, metadata)
      const before = { refreshToken: undefined, idToken: undefined, idTokenExpiresAtMs: undefined }
      const requested = { ...before, scopes: requestedScopes(scopes, redirect) }
      return { tokens: tokensOf(read, verified, requested), subject: verified.subject, claims }
    },
    async refresh(tokens, subject, endsAtMs) {
      const { refreshToken } = tokens
      if (refreshToken === undefined) throw new Failure('no_session', { detail: `${name} gave no refresh token` })
      const metadata = await inTime(discover(), endsAtMs, DISCOVERY)
      const { scopes: granted } = tokens
      const read = await ask(metadata, (at) => ({ ...at, step: 'refresh', refreshToken, scopes: granted, endsAtMs }))
      return renewed(read, subject, tokens, endsAtMs)
    },
    async revoke(tokens) {
      const { tokenEndpoint: url, revocationEndpoint: to, secretInBody } = await discover()
      if (to !== undefined) await revoke({ url, issuer, to, secretInBody }, tokens)
      return to !== undefined
    },
    async accepts({ accessToken }) {
      const request = userInfoRequest(await discover())
      return request && acceptsToken(request, accessToken, connections)
    },
    close: () => connections.close(),
  }
}
