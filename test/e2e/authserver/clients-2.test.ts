import {
  Client,
  StreamableHTTPClientTransport,
  UnauthorizedError,
  type OAuthClientProvider,
  type OAuthDiscoveryState,
  type StoredOAuthClientInformation,
  type StoredOAuthTokens,
} from '@modelcontextprotocol/client'
import { afterEach, describe, expect, it } from 'vitest'
import { createSockets } from '../../support/sockets.ts'
import { openWorld, type World } from './world.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const REDIRECT = 'http://localhost:33333/callback'

/** An application of the official client 2.x: keeps what the client gives it, and has a browser. */
class Application implements OAuthClientProvider {
  readonly redirectUrl = REDIRECT
  readonly clientMetadata = { client_name: 'Official client', redirect_uris: [REDIRECT] }
  /** Authorization requests for which the client sent its user away. */
  readonly sent: URL[] = []
  registrations = 0
  client: StoredOAuthClientInformation | undefined
  kept: StoredOAuthTokens | undefined
  #verifier = ''
  #discovery: OAuthDiscoveryState | undefined

  state() {
    return 'state-of-the-application'
  }
  clientInformation() {
    return this.client
  }
  saveClientInformation(client: StoredOAuthClientInformation) {
    this.registrations += 1
    this.client = client
  }
  tokens() {
    return this.kept
  }
  saveTokens(tokens: StoredOAuthTokens) {
    this.kept = tokens
  }
  redirectToAuthorization(url: URL) {
    this.sent.push(url)
  }
  saveCodeVerifier(verifier: string) {
    this.#verifier = verifier
  }
  codeVerifier() {
    return this.#verifier
  }
  // With these the client refuses to redeem a code at another server than the one it sent its user to (SEP-2352).
  discoveryState() {
    return this.#discovery
  }
  saveDiscoveryState(state: OAuthDiscoveryState) {
    this.#discovery = state
  }
  invalidateCredentials(scope: string) {
    if (scope === 'discovery' || scope === 'all') this.#discovery = undefined
    if (scope === 'tokens' || scope === 'all') this.kept = undefined
    if (scope === 'client' || scope === 'all') this.client = undefined
  }
}

const LEGACY = '2025-11-25'

async function connect(url: string, application: Application, revision: string): Promise<Client> {
  const mode = revision === LEGACY ? ('legacy' as const) : { pin: revision }
  const client = new Client({ name: 'official', version: '2.0.0' }, { versionNegotiation: { mode } })
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { authProvider: application }))
  return client
}

/** The user's part after the client has sent them away, and the client's with what came back. */
async function finish(world: World, url: string, application: Application): Promise<void> {
  const answer = await world.userAt(application.sent.at(-1)?.href ?? '')
  expect(answer.searchParams.get('state')).toBe('state-of-the-application')
  const transport = new StreamableHTTPClientTransport(new URL(url), { authProvider: application })
  await transport.finishAuth(answer.searchParams)
}

async function logIn(world: World, url: string, application: Application, revision: string): Promise<Client> {
  await expect(connect(url, application, revision)).rejects.toThrow(UnauthorizedError)
  await finish(world, url, application)
  return connect(url, application, revision)
}

const call = async (client: Client): Promise<string> => {
  const { tools } = await client.listTools()
  expect(tools.length).toBeGreaterThan(0)
  return JSON.stringify((await client.callTool({ name: 'show_request', arguments: {} })).content)
}

describe.each([LEGACY, '2026-07-28'])('the official client 2.x with revision %s, from the bare MCP URL', (revision) => {
  it.each(['/mcp', '/inject'])('registers, logs in with PKCE and reaches a tool result at %s', async (path) => {
    const world = await openWorld(sockets)
    const application = new Application()
    const client = await logIn(world, world.url + path, application, revision)
    expect(client.getNegotiatedProtocolVersion()).toBe(revision)
    expect(await call(client)).toContain('tools/call')
    expect(application.registrations).toBe(1)
    expect(application.sent).toHaveLength(1)
    const { searchParams: asked } = application.sent[0] as URL
    expect(Object.fromEntries(asked)).toMatchObject({ code_challenge_method: 'S256', resource: world.url + path })
    await client.close()
  })

  it('registers and gets the scopes that the route demands', async () => {
    const world = await openWorld(sockets, {
      routes: ({ proxy, backend }) => [
        {
          name: 'mcp',
          path: '/mcp',
          target: `${backend}/plain`,
          externalAuthConfigRef: { name: 'static' },
          resourceUrl: `${proxy}/mcp`,
          requiredScopes: ['mcp:use'],
        },
      ],
    })
    const application = new Application()
    const client = await logIn(world, `${world.url}/mcp`, application, revision)
    expect(await call(client)).toContain('tools/call')
    expect(application.client).toMatchObject({ scope: expect.stringContaining('mcp:use') as string })
    expect(application.kept?.scope?.split(' ')).toContain('mcp:use')
    await client.close()
  })

  it('refreshes by itself when its access token has expired, and asks nobody', async () => {
    const time = { aheadMs: 0 }
    const world = await openWorld(sockets, {
      clock: { now: () => Date.now() + time.aheadMs },
      spec: { tokenLifespans: { accessTokenLifespan: '1m' } },
    })
    const application = new Application()
    const client = await logIn(world, `${world.url}/inject`, application, revision)
    const before = application.kept
    time.aheadMs = 120_000
    expect(await call(client)).toContain('tools/call')
    expect(application.kept?.access_token).not.toBe(before?.access_token)
    expect(application.kept?.refresh_token).not.toBe(before?.refresh_token)
    expect(application.sent).toHaveLength(1)
    await client.close()
  })

  it('logs in again by itself, as the same client, when the session at the identity provider has ended', async () => {
    const time = { aheadMs: 0 }
    const world = await openWorld(sockets, { clock: { now: () => Date.now() + time.aheadMs } })
    const application = new Application()
    const url = `${world.url}/inject`
    const client = await logIn(world, url, application, revision)
    expect(await call(client)).toContain('tools/call')
    const before = application.kept?.access_token
    await world.idp.revoke('alice')
    // The upstream's token is due, and there is no other to be had.
    time.aheadMs = 700_000
    await expect(client.listTools({}, { cacheMode: 'bypass' })).rejects.toThrow(UnauthorizedError)
    expect(application.sent).toHaveLength(2)
    time.aheadMs = 0
    await finish(world, url, application)
    const fresh = await connect(url, application, revision)
    expect(await call(fresh)).toContain('tools/call')
    expect(application.kept?.access_token).not.toBe(before)
    expect(application.registrations).toBe(1)
    await fresh.close()
  })
})
