import { UnauthorizedError } from '@modelcontextprotocol/client'
import { decodeJwt } from 'jose'
import * as openid from 'openid-client'
import { afterEach, describe, expect, it } from 'vitest'
import { createSockets } from '../../../support/sockets.ts'
import { TLS } from '../../../support/tls.ts'
import { Application, call, connect, finish, LEGACY, logIn } from '../../../support/e2e/authserver/application.ts'
import { openWorld, type World, type WorldOptions } from '../../../support/e2e/authserver/world.ts'

// What the client scenarios `auth/*` of the official conformance suite put a client to the test with, as far as a server like
// ours can make it: the official client meets it here. Each test is named after the scenarios that it stands for.

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const ERAS = [LEGACY, '2026-07-28']

/** A world whose route demands scopes. */
const demanding = (requiredScopes: readonly string[], more: WorldOptions = {}): Promise<World> =>
  openWorld(sockets, {
    ...more,
    routes: ({ proxy, backend }) => [
      {
        name: 'mcp',
        path: '/mcp',
        target: `${backend}/plain`,
        externalAuthConfigRef: { name: 'static' },
        resourceUrl: `${proxy}/mcp`,
        requiredScopes,
      },
    ],
  })

/** Authorization requests of the client. */
const asked = (application: Application, index = 0): Record<string, string> =>
  Object.fromEntries(application.sent[index]?.searchParams ?? [])

describe.each(ERAS)('the official client with revision %s', (revision) => {
  it.each(['none', 'client_secret_basic', 'client_secret_post'])(
    'authenticates at the token endpoint as it has registered: %s (token-endpoint-auth-*)',
    async (method) => {
      const world = await openWorld(sockets)
      const application = new Application({ token_endpoint_auth_method: method })
      const client = await logIn(world, `${world.url}/mcp`, application, revision)
      expect(await call(client)).toContain('tools/call')
      expect(application.client).toMatchObject({ token_endpoint_auth_method: method })
      expect('client_secret' in (application.client ?? {})).toBe(method !== 'none')
      await client.close()
    },
  )

  it('is known by its metadata document (basic-cimd)', async () => {
    const world = await openWorld(sockets, {
      spec: { clientMetadata: { allowPrivateIP: true, caBundleRef: { name: 'idp', key: 'ca' } } },
    })
    const application = new Application({ grant_types: ['authorization_code', 'refresh_token'] })
    const origin = await sockets.https(TLS.server, (_request, response) => {
      const document = { client_id: application.clientMetadataUrl, ...application.clientMetadata }
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(document))
    })
    application.clientMetadataUrl = `${origin}/client.json`
    const client = await logIn(world, `${world.url}/inject`, application, revision)
    expect(await call(client)).toContain('tools/call')
    expect(asked(application)['client_id']).toBe(application.clientMetadataUrl)
    expect(decodeJwt(application.kept?.access_token ?? '')['client_id']).toBe(application.clientMetadataUrl)
    // It stays logged in as any other.
    expect(application.kept?.refresh_token).toBeDefined()
    await client.close()
  })

  it('uses what it was registered as before (pre-registration)', async () => {
    const world = await openWorld(sockets)
    const before = new Application({ token_endpoint_auth_method: 'client_secret_post' })
    await (await logIn(world, `${world.url}/mcp`, before, revision)).close()
    const application = new Application()
    application.client = before.client
    await (await logIn(world, `${world.url}/mcp`, application, revision)).close()
    expect([application.registrations, asked(application)['client_id']]).toEqual([0, before.client?.client_id])
  })

  it('asks for the scopes of our challenge, and for offline_access where it wants to (scope-*, offline-access-scope)', async () => {
    const world = await demanding(['mcp:use', 'mcp:more'])
    const application = new Application()
    const client = await logIn(world, `${world.url}/mcp`, application, revision)
    expect(asked(application)['scope']?.split(' ')).toEqual(expect.arrayContaining(['mcp:use', 'mcp:more']))
    expect(application.kept?.scope?.split(' ')).toEqual(expect.arrayContaining(['mcp:use', 'mcp:more']))
    await client.close()
  })

  it('asks for no scope where nothing names one (scope-omitted-when-undefined)', async () => {
    const world = await openWorld(sockets)
    const application = new Application()
    await (await logIn(world, `${world.url}/mcp`, application, revision)).close()
    // 2026-07-28 adds what our metadata offer to who wants to stay logged in.
    expect([undefined, 'offline_access']).toContain(asked(application)['scope'])
  })

  it('asks again for more when a token lacks a scope that is demanded by now (scope-step-up)', async () => {
    const world = await demanding(['mcp:use'])
    const application = new Application()
    await (await logIn(world, `${world.url}/mcp`, application, revision)).close()
    await world.proxy.write(
      'proxy.json',
      JSON.stringify(
        JSON.parse(world.proxyConfig, (key, value: unknown) =>
          key === 'requiredScopes' ? ['mcp:use', 'mcp:more'] : value,
        ),
      ),
    )
    expect(await world.proxy.reload()).toEqual({ ok: true })
    await expect(connect(`${world.url}/mcp`, application, revision)).rejects.toThrow(UnauthorizedError)
    await finish(world, `${world.url}/mcp`, application)
    const client = await connect(`${world.url}/mcp`, application, revision)
    expect(await call(client)).toContain('tools/call')
    expect(application.kept?.scope?.split(' ')).toEqual(expect.arrayContaining(['mcp:use', 'mcp:more']))
    expect(application.registrations).toBe(1)
    await client.close()
  })

  it('takes our answers for those of our issuer (iss-supported, metadata-*, resource-mismatch)', async () => {
    const world = await openWorld(sockets, {
      servers: { deep: '/tenant/a' },
      routes: ({ proxy, backend }) => [
        {
          name: 'deep',
          path: '/deep',
          target: `${backend}/plain`,
          externalAuthConfigRef: { name: 'static' },
          authServerRef: { kind: 'MCPExternalAuthConfig', name: 'deep' },
          resourceUrl: `${proxy}/deep`,
        },
      ],
    })
    const application = new Application()
    const client = await logIn(world, `${world.url}/deep`, application, revision)
    expect(await call(client)).toContain('tools/call')
    expect(application.sent[0]?.pathname).toBe('/tenant/a/oauth/authorize')
    expect(decodeJwt(application.kept?.access_token ?? '')).toMatchObject({
      iss: `${world.url}/tenant/a`,
      aud: `${world.url}/deep`,
    })
    await client.close()
  })

  it('logs in again automatically after its session was revoked', async () => {
    const world = await openWorld(sockets)
    const url = `${world.url}/inject`
    const application = new Application()
    const client = await logIn(world, url, application, revision)
    const as = await openid.discovery(
      new URL(world.url),
      application.client?.client_id ?? '',
      undefined,
      openid.None(),
      {
        execute: [openid.allowInsecureRequests],
      },
    )
    await openid.tokenRevocation(as, application.kept?.refresh_token ?? '')
    await expect(client.listTools({}, { cacheMode: 'bypass' })).rejects.toThrow(UnauthorizedError)
    expect(application.sent).toHaveLength(2)
    await finish(world, url, application)
    const again = await connect(url, application, revision)
    expect(await call(again)).toContain('tools/call')
    await again.close()
  })
})

it.each(['oidc', 'oauth2'] as const)(
  'openid-client discovers us (%s), logs in, renews and revokes',
  async (algorithm) => {
    const world = await openWorld(sockets, { servers: { deep: '/tenant/a' } })
    const redirect = 'http://127.0.0.1:7777/callback'
    const metadata = {
      redirect_uris: [redirect],
      grant_types: ['authorization_code', 'refresh_token'],
      token_endpoint_auth_method: 'none',
    }
    const config = await openid.dynamicClientRegistration(new URL(world.url), metadata, openid.None(), {
      algorithm,
      execute: [openid.allowInsecureRequests],
    })
    expect(config.serverMetadata()).toMatchObject({ issuer: world.url, code_challenge_methods_supported: ['S256'] })
    const verifier = openid.randomPKCECodeVerifier()
    const state = openid.randomState()
    const url = openid.buildAuthorizationUrl(config, {
      redirect_uri: redirect,
      state,
      code_challenge: await openid.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
      resource: `${world.url}/mcp`,
    })
    const back = await world.userAt(url.href)
    const tokens = await openid.authorizationCodeGrant(config, back, {
      pkceCodeVerifier: verifier,
      expectedState: state,
    })
    const renewed = await openid.refreshTokenGrant(config, tokens.refresh_token ?? '')
    expect(decodeJwt(renewed.access_token)).toMatchObject({ iss: world.url, aud: `${world.url}/mcp` })
    await openid.tokenRevocation(config, renewed.refresh_token ?? '')
    await expect(openid.refreshTokenGrant(config, renewed.refresh_token ?? '')).rejects.toMatchObject({
      error: 'invalid_grant',
    })
  },
)
