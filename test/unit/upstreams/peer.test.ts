import { randomBytes } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createUpstream, type Upstream, type UpstreamLeg } from '../../../src/upstreams/index.ts'
import { type Clock, Secret } from '../../../src/core/index.ts'
import { createOutbound } from '../../../src/net/index.ts'
import { upstreamProvider } from '../../../src/resources/upstream/upstream-provider.ts'
import { IN_TIME, NO_FILES } from '../../support/upstreams/rig.ts'
import { createRecordingLog, createTestSecrets } from '../../support/ports.ts'
import { createSockets } from '../../support/sockets.ts'
import { TLS } from '../../support/tls.ts'
import { startStrictIdp, type StrictIdp } from '../../support/authserver/strict-idp.ts'

const sockets = createSockets()
const clock: Clock = { now: () => Date.now() }
const SECRET = 'secret: of/the+client'
const REDIRECT = 'https://mcp.example.com/oauth/callback'

let idp: StrictIdp

beforeEach(async () => {
  const client = { redirect_uris: [REDIRECT], grant_types: ['authorization_code', 'refresh_token'] }
  idp = await startStrictIdp(sockets, [
    { ...client, client_id: 'us', client_secret: SECRET },
    { ...client, client_id: 'post', client_secret: SECRET, token_endpoint_auth_method: 'client_secret_post' },
    { ...client, client_id: 'public', token_endpoint_auth_method: 'none' },
    { ...client, client_id: 'ec', client_secret: SECRET, id_token_signed_response_alg: 'ES256' },
    { ...client, client_id: 'ed', client_secret: SECRET, id_token_signed_response_alg: 'EdDSA' },
  ])
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
          issuerUrl: idp.issuer,
          clientId,
          ...(clientId === 'public' ? {} : { clientSecretRef: { name: 'idp', key: 'secret' } }),
          scopes: ['openid', 'offline_access', 'profile', 'email'],
          additionalAuthorizationParams: { prompt: 'consent' },
          ...config,
        },
      }),
      {
        clock,
        log: createRecordingLog(),
        secrets,
        ...NO_FILES,
        outbound: (options) => createOutbound({ ...options, clock }),
      },
    ),
  )
}

const newLeg = (): UpstreamLeg => ({
  state: randomBytes(16).toString('base64url'),
  nonce: randomBytes(16).toString('base64url'),
  codeVerifier: new Secret(randomBytes(32).toString('base64url')),
  redirectUri: REDIRECT,
})

const authorize = async (url: URL, subject: string): Promise<URLSearchParams> =>
  (await idp.approve(url.href, subject)).searchParams

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
    const next = await upstream.refresh(tokens, subject, IN_TIME)
    expect(next.tokens.refreshToken?.equals(tokens.refreshToken ?? '')).toBe(false)
    expect(next.tokens.idToken).not.toBe(tokens.idToken)
    expect(next.claims).toMatchObject({ sub: 'alice', name: 'Alice' })
    // The previous one is used up: presented again, it revokes the family there, and the session here.
    await expect(upstream.refresh(tokens, subject, IN_TIME)).rejects.toMatchObject({ code: 'no_session' })
    await expect(upstream.refresh(next.tokens, subject, IN_TIME)).rejects.toMatchObject({ code: 'no_session' })
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
      detail: 'ID token: nonce differs from the one sent',
    })
  })

  it('says that the client is not configured right', async () => {
    const upstream = open('us', { clientSecretRef: { name: 'idp', key: 'old' } })
    await expect(login(upstream)).rejects.toMatchObject({ code: 'config_error' })
  })
})
