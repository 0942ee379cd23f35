import { randomBytes } from 'node:crypto'
import { generateKeyPair, exportJWK } from 'jose'
import { Provider } from 'oidc-provider'
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createUpstream, type Upstream, type UpstreamLeg } from '../../../src/authserver/index.ts'
import { Secret, type Clock } from '../../../src/core/index.ts'
import { createOutbound } from '../../../src/net/index.ts'
import { upstreamProvider } from '../../../src/resources/upstream-provider.ts'
import { createRecordingLog, createTestSecrets } from '../../support/ports.ts'
import { createSockets } from '../../support/sockets.ts'
import { TLS } from '../../support/tls.ts'

const sockets = createSockets()
const clock: Clock = { now: () => Date.now() }
const SECRET = 'secret: of/the+client'
const REDIRECT = 'https://mcp.example.com/oauth/callback'
const keys: object[] = []

let provider: Provider
let issuer: string

beforeAll(async () => {
  for (const alg of ['RS256', 'ES256', 'EdDSA']) {
    const { privateKey } = await generateKeyPair(alg, { extractable: true })
    keys.push({ ...(await exportJWK(privateKey)), alg, use: 'sig', kid: alg })
  }
})

/** Somebody else's OpenID provider, as strict as it can be made. */
beforeEach(async () => {
  issuer = await sockets.https(TLS.server, (request, response) => void provider.callback()(request, response))
  const client = { redirect_uris: [REDIRECT], grant_types: ['authorization_code', 'refresh_token'] }
  provider = new Provider(issuer, {
    clients: [
      { ...client, client_id: 'us', client_secret: SECRET },
      { ...client, client_id: 'post', client_secret: SECRET, token_endpoint_auth_method: 'client_secret_post' },
      { ...client, client_id: 'public', token_endpoint_auth_method: 'none' },
      { ...client, client_id: 'ec', client_secret: SECRET, id_token_signed_response_alg: 'ES256' },
      { ...client, client_id: 'ed', client_secret: SECRET, id_token_signed_response_alg: 'EdDSA' },
    ],
    jwks: { keys },
    pkce: { required: () => true },
    scopes: ['openid', 'offline_access', 'profile', 'email'],
    claims: { openid: ['sub'], profile: ['name', 'groups'], email: ['email', 'email_verified'] },
    // As the specification has it: what scopes ask for is at user info.
    conformIdTokenClaims: true,
    rotateRefreshToken: true,
    issueRefreshToken: () => true,
    findAccount: (_context, id) => ({
      accountId: id,
      claims: () => ({ sub: id, name: 'Alice', groups: ['dev'], email: 'alice@example.com', email_verified: true }),
    }),
    enabledJWA: { idTokenSigningAlgValues: ['RS256', 'ES256', 'EdDSA'] },
    clientAuthMethods: ['client_secret_basic', 'client_secret_post', 'none'],
    cookies: { keys: ['x'.repeat(32)] },
    features: { devInteractions: { enabled: false } },
    ttl: {
      AccessToken: 600,
      IdToken: 600,
      RefreshToken: 3600,
      AuthorizationCode: 60,
      Grant: 3600,
      Session: 3600,
      Interaction: 60,
    },
  })
})
afterEach(() => sockets.closeAll())

const open = (clientId: string, config: object = {}): Upstream => {
  const secrets = createTestSecrets({ 'idp/secret': SECRET, 'idp/old': 'an old one', 'idp/ca': TLS.ca.toString() })
  return sockets.closing(
    createUpstream(
      upstreamProvider().parse({
        name: 'peer',
        type: 'oidc',
        caBundleRef: { name: 'idp', key: 'ca' },
        oidcConfig: {
          issuerUrl: issuer,
          clientId,
          ...(clientId === 'public' ? {} : { clientSecretRef: { name: 'idp', key: 'secret' } }),
          scopes: ['openid', 'offline_access', 'profile', 'email'],
          additionalAuthorizationParams: { prompt: 'consent' },
          ...config,
        },
      }),
      { clock, log: createRecordingLog(), secrets, outbound: (options) => createOutbound({ ...options, clock }) },
    ),
  )
}

const newLeg = (): UpstreamLeg => ({
  state: randomBytes(16).toString('base64url'),
  nonce: randomBytes(16).toString('base64url'),
  codeVerifier: new Secret(randomBytes(32).toString('base64url')),
  redirectUri: REDIRECT,
})

/** What the user does in the browser: logs in, consents. Gives the parameters of the way back. */
async function authorize(url: URL, subject: string): Promise<URLSearchParams> {
  const outbound = sockets.closing(createOutbound({ name: 'browser', clock, caCert: () => TLS.ca }))
  const jar = new Map<string, string>()
  const visit = async (at: string) => {
    const cookie = [...jar].map((pair) => pair.join('=')).join('; ')
    const { status, headers } = await outbound.request({ method: 'GET', url: at, headers: { cookie } })
    for (const [, name = '', value = ''] of (headers['set-cookie'] ?? '').matchAll(/(?:^|, )([^=;, ]+)=([^;]*)/g)) {
      if (!/^(path|expires|samesite)$/i.test(name)) jar.set(name, value)
    }
    expect([302, 303]).toContain(status)
    return new URL(headers['location'] ?? '', issuer)
  }
  let at = await visit(url.href)
  while (at.origin === issuer) {
    const uid = /^\/interaction\/([^/]+)$/.exec(at.pathname)?.[1]
    if (uid !== undefined) {
      const interaction = await provider.Interaction.find(uid)
      if (interaction === undefined) throw new Error('no such interaction')
      const { scope = '', client_id: clientId } = interaction.params as { scope?: string; client_id: string }
      const grant = new provider.Grant({ accountId: subject, clientId })
      grant.addOIDCScope(scope)
      interaction.result = { login: { accountId: subject }, consent: { grantId: await grant.save() } }
      await interaction.persist()
      at = await visit(interaction.returnTo)
    } else at = await visit(at.href)
  }
  return at.searchParams
}

const login = async (upstream: Upstream, subject = 'alice') => {
  const leg = newLeg()
  return upstream.finish(leg, await authorize(await upstream.authorizationUrl(leg), subject))
}

describe('oidc-provider as an upstream', () => {
  it.each(['us', 'post', 'public', 'ec', 'ed'])('logs in through client "%s", and refreshes', async (clientId) => {
    const upstream = open(clientId)
    const { tokens, subject, claims } = await login(upstream)
    expect(subject).toBe('alice')
    expect(claims).toMatchObject({ name: 'Alice', email: 'alice@example.com', email_verified: true, groups: ['dev'] })
    expect(tokens.scopes).toEqual(['openid', 'offline_access', 'profile', 'email'])
    const next = await upstream.refresh(tokens, subject)
    expect(next.tokens.refreshToken?.equals(tokens.refreshToken ?? '')).toBe(false)
    expect(next.tokens.idToken).not.toBe(tokens.idToken)
    expect(next.claims).toMatchObject({ sub: 'alice', name: 'Alice' })
    // The one before is spent: shown again, it ends the family there, and the session here.
    await expect(upstream.refresh(tokens, subject)).rejects.toMatchObject({ code: 'no_session' })
    await expect(upstream.refresh(next.tokens, subject)).rejects.toMatchObject({ code: 'no_session' })
  })

  it('refuses another verifier, and a code that was used', async () => {
    const upstream = open('us')
    const leg = newLeg()
    const came = await authorize(await upstream.authorizationUrl(leg), 'alice')
    const other = { ...leg, codeVerifier: newLeg().codeVerifier }
    await expect(upstream.finish(other, came)).rejects.toMatchObject({ code: 'identity_provider_error' })
    await upstream.finish(leg, came)
    await expect(upstream.finish(leg, came)).rejects.toMatchObject({ code: 'identity_provider_error' })
  })

  it('is found out when the answer is for another leg', async () => {
    const upstream = open('us')
    const leg = newLeg()
    const came = await authorize(await upstream.authorizationUrl({ ...leg, nonce: 'another' }), 'alice')
    await expect(upstream.finish(leg, came)).rejects.toMatchObject({
      detail: 'ID token: nonce is not the one that was sent',
    })
  })

  it('says that the client is not configured right', async () => {
    const upstream = open('us', { clientSecretRef: { name: 'idp', key: 'old' } })
    await expect(login(upstream)).rejects.toMatchObject({ code: 'config_error' })
  })
})
