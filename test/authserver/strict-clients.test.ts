import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import * as oauth from 'oauth4webapi'
import { afterEach, describe, expect, it } from 'vitest'
import { createSockets } from '../support/sockets.ts'
import { TLS } from '../support/tls.ts'
import { Browser, textOf } from './browser.ts'
import {
  atUpstream,
  authorizeUrl,
  LIMITS,
  makePkce,
  postForm,
  REDIRECT,
  redeem,
  register,
  startRig,
  type Rig,
} from './rig.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const INSIDE = { clientMetadata: { allowPrivateIP: true, caBundleRef: { name: 'idp', key: 'ca' } }, limits: LIMITS }

/** The user's part; gives the address that the client gets. */
async function userAt(rig: Rig, url: string): Promise<URL> {
  const browser = new Browser()
  const sent = await browser.press(await browser.get(url), 'continue')
  return new URL((await atUpstream(rig, browser, sent)).location ?? '')
}

describe('oauth4webapi as a strict client', () => {
  const insecure = { [oauth.allowInsecureRequests]: true } as const
  it.each(['oauth2', 'oidc'] as const)('discovers (%s), registers, logs in, renews and revokes', async (algorithm) => {
    const rig = await startRig(sockets, { spec: { limits: LIMITS } })
    const issuer = new URL(rig.issuer)
    const server = await oauth.processDiscoveryResponse(
      issuer,
      await oauth.discoveryRequest(issuer, { algorithm, ...insecure }),
    )
    const client = await oauth.processDynamicClientRegistrationResponse(
      await oauth.dynamicClientRegistrationRequest(
        server,
        { redirect_uris: [REDIRECT], grant_types: ['authorization_code', 'refresh_token'] },
        insecure,
      ),
    )
    const pkce = makePkce()
    const url = authorizeUrl(rig, { id: client.client_id, secret: undefined }, pkce)
    const parameters = oauth.validateAuthResponse(server, client, await userAt(rig, url), 'state-of-the-client')
    const none = oauth.None()
    const answer = await oauth.processAuthorizationCodeResponse(
      server,
      client,
      await oauth.authorizationCodeGrantRequest(server, client, none, parameters, REDIRECT, pkce.verifier, insecure),
    )
    const renewed = await oauth.processRefreshTokenResponse(
      server,
      client,
      await oauth.refreshTokenGrantRequest(server, client, none, answer.refresh_token ?? '', insecure),
    )
    await oauth.processRevocationResponse(
      await oauth.revocationRequest(server, client, none, renewed.refresh_token ?? '', insecure),
    )
    const ended = await oauth.refreshTokenGrantRequest(server, client, none, renewed.refresh_token ?? '', insecure)
    await expect(oauth.processRefreshTokenResponse(server, client, ended)).rejects.toMatchObject({
      error: 'invalid_grant',
    })
  })
})

describe('a client that is known by its metadata document', () => {
  async function publish(rig: Rig, change: (id: string) => Readonly<Record<string, unknown>> | string, headers = {}) {
    let asked = 0
    const origin = await sockets.https(TLS.server, (_request, response) => {
      asked += 1
      const made = change(id)
      const body =
        typeof made === 'string' ? made : JSON.stringify({ client_id: id, redirect_uris: [REDIRECT], ...made })
      response.writeHead(200, { 'content-type': 'application/json', ...headers }).end(body)
    })
    const id = `${origin}/client.json`
    const pkce = makePkce()
    return {
      id,
      pkce,
      asked: () => asked,
      open: () => new Browser().get(authorizeUrl(rig, { id, secret: undefined }, pkce)),
    }
  }

  it('logs in without being registered; the page names its URL; the document is kept', async () => {
    const rig = await startRig(sockets, { spec: INSIDE })
    const client = await publish(rig, () => ({
      client_name: 'CIMD',
      scope: 'mcp:read offline_access',
      grant_types: ['authorization_code', 'refresh_token'],
    }))
    expect(textOf(await client.open())).toContain(`published at ${client.id}`)
    const answer = await userAt(rig, authorizeUrl(rig, { id: client.id, secret: undefined }, client.pkce))
    const code = answer.searchParams.get('code') ?? ''
    expect((await redeem(rig, { id: client.id, secret: undefined }, code, client.pkce)).status).toBe(200)
    expect(client.asked()).toBe(1)
    rig.clock.advance(300_001)
    await client.open()
    expect(client.asked()).toBe(2)
  })

  it.each<[string, (id: string) => Readonly<Record<string, unknown>> | string]>([
    ['another client_id', () => ({ client_id: 'https://other.example/c' })],
    ['a secret', () => ({ client_secret: 'x' })],
    ['a shared-secret method', () => ({ token_endpoint_auth_method: 'client_secret_basic' })],
    ['the other shared-secret method', () => ({ token_endpoint_auth_method: 'client_secret_post' })],
    ['a private-use redirect beside', () => ({ redirect_uris: [REDIRECT, 'cursor://x'] })],
    ['a secret that ends', () => ({ client_secret_expires_at: 0 })],
    ['more than 10 KiB', () => ({ client_name: 'x', extra: 'x'.repeat(11_000) })],
    ['no JSON', () => 'hello'],
  ])('with %s is refused', async (_name, change) => {
    const rig = await startRig(sockets, { spec: INSIDE })
    const seen = await (await publish(rig, change)).open()
    expect([seen.status, seen.location]).toEqual([400, undefined])
  })

  it.each(['/a/../client.json', '/./client.json', '/%2e%2e/client.json', '/a/%2E/client.json', '/a/..'])(
    'at %s is not fetched: two names would be one client',
    async (path) => {
      const rig = await startRig(sockets, { spec: INSIDE })
      const client = await publish(rig, (id) => ({ client_id: id.replace('/client.json', path) }))
      const id = client.id.replace('/client.json', path)
      const seen = await new Browser().get(authorizeUrl(rig, { id, secret: undefined }, client.pkce))
      expect([seen.status, seen.html]).toEqual([400, expect.stringContaining('<code>invalid_client: ')])
      expect(client.asked()).toBe(0)
    },
  )

  it('at a private address is not fetched unless that is allowed', async () => {
    const rig = await startRig(sockets)
    const client = await publish(rig, () => ({}))
    expect((await client.open()).status).toBe(400)
    expect(client.asked()).toBe(0)
  })
})

describe('a client that signs assertions (private_key_jwt)', () => {
  it('is let in once per assertion, with ours as only audience', async () => {
    const { rig, ask, assertion } = await startSigner()
    const good = await assertion({ jti: 'one' })
    expect(await ask(good)).toBe('invalid_grant')
    expect(await ask(good)).toBe('invalid_client')
    expect(await ask(await assertion({ aud: `${rig.issuer}/oauth/token`, jti: 'two' }))).toBe('invalid_grant')
    expect(await ask(await assertion({ aud: 'https://other.example', jti: 'three' }))).toBe('invalid_client')
    expect(await ask(await assertion({ aud: [rig.issuer, 'https://other.example'], jti: 'four' }))).toBe(
      'invalid_client',
    )
    const same = await assertion({ jti: 'five' })
    const errors = await Promise.all(Array.from({ length: 20 }, () => ask(same)))
    expect(errors.filter((error) => error === 'invalid_grant')).toHaveLength(1)
    const [early, late] = [await assertion({ jti: 'six' }), await assertion({ jti: 'seven' })]
    rig.clock.advance(64_000)
    expect(await ask(early)).toBe('invalid_grant')
    rig.clock.advance(1_000)
    expect(await ask(late)).toBe('invalid_client')
    expect(await ask(good)).toBe('invalid_client')
    const future = await assertion({ jti: 'eight' })
    rig.clock.advance(-6_000)
    expect(await ask(future)).toBe('invalid_client')
  })

  it('is not let in by one that outlives what is remembered of it, nor by one without a name', async () => {
    const { rig, ask, assertion } = await startSigner()
    expect(await ask(await assertion({ jti: 'too-long', lifeSeconds: 3_601 }))).toBe('invalid_client')
    const longest = await assertion({ jti: 'longest', lifeSeconds: 3_600 })
    expect(await ask(longest)).toBe('invalid_grant')
    // Its last second: it is remembered still.
    rig.clock.advance(3_604_000)
    expect(await ask(longest)).toBe('invalid_client')
    expect(await ask(await assertion({}))).toBe('invalid_client')
    expect(await ask(await assertion({ jti: '' }))).toBe('invalid_client')
  })
})

interface Said {
  readonly jti?: string
  /** Default: the issuer. */
  readonly aud?: string | string[]
  /** Default 60. */
  readonly lifeSeconds?: number
}

/** A client that is registered with a key; what the server says to a refresh with an assertion of it. */
async function startSigner() {
  const rig = await startRig(sockets, { spec: { limits: LIMITS } })
  const { privateKey, publicKey } = await generateKeyPair('ES256', { extractable: true })
  const jwks = { keys: [{ ...(await exportJWK(publicKey)), kid: 'k' }] }
  const client = await register(rig, { token_endpoint_auth_method: 'private_key_jwt', jwks })
  // The clock of the server, which is not this machine's.
  const seconds = () => Math.floor(rig.clock.now() / 1_000)
  return {
    rig,
    assertion: ({ jti, aud = rig.issuer, lifeSeconds = 60 }: Said) =>
      new SignJWT(jti === undefined ? {} : { jti })
        .setProtectedHeader({ alg: 'ES256', kid: 'k' })
        .setIssuer(client.id)
        .setSubject(client.id)
        .setAudience(aud)
        .setIssuedAt(seconds())
        .setExpirationTime(seconds() + lifeSeconds)
        .sign(privateKey),
    ask: async (signed: string) => {
      const form = {
        grant_type: 'refresh_token',
        refresh_token: 'x',
        client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
        client_assertion: signed,
      }
      return ((await (await postForm(`${rig.issuer}/oauth/token`, form)).json()) as { error: string }).error
    },
  }
}
