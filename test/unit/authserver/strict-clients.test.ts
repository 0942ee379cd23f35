import * as oauth from 'oauth4webapi'
import { afterEach, describe, expect, it } from 'vitest'
import { createSockets } from '../../support/sockets.ts'
import { TLS } from '../../support/tls.ts'
import { Browser, textOf } from '../../support/authserver/browser.ts'
import {
  atUpstream,
  authorizeUrl,
  LIMITS,
  makePkce,
  REDIRECT,
  redeem,
  startRig,
  type Rig,
} from '../../support/authserver/rig.ts'

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
    ['private-use redirects alone', () => ({ redirect_uris: ['cursor://x'] })],
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
