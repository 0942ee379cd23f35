import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { UnauthorizedError, type OAuthClientProvider } from '@modelcontextprotocol/sdk/client/auth.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { afterEach, describe, expect, it } from 'vitest'
import { createSockets } from '../../../support/sockets.ts'
import { openWorld, type World } from '../../../support/e2e/authserver/world.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const REDIRECT = 'http://localhost:33333/callback'

/** An application's part in a login of the official client: storage, and a browser. */
class Application implements OAuthClientProvider {
  readonly redirectUrl = REDIRECT
  readonly clientMetadata = {
    client_name: 'Official client',
    redirect_uris: [REDIRECT],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
  }
  sentTo: URL | undefined
  readonly kept: {
    client?: never
    tokens?: { access_token: string; refresh_token?: string; token_type: string }
    verifier?: string
  } = {}
  #client: unknown
  clientInformation() {
    return this.#client as never
  }
  saveClientInformation(client: unknown) {
    this.#client = client
  }
  tokens() {
    return this.kept.tokens
  }
  saveTokens(tokens: { access_token: string; refresh_token?: string | undefined; token_type: string }) {
    const { refresh_token: refreshToken, ...rest } = tokens
    this.kept.tokens = { ...rest, ...(refreshToken === undefined ? {} : { refresh_token: refreshToken }) }
  }
  redirectToAuthorization(url: URL) {
    this.sentTo = url
  }
  saveCodeVerifier(verifier: string) {
    this.kept.verifier = verifier
  }
  invalidateCredentials(scope: string) {
    if (scope === 'tokens' || scope === 'all') delete this.kept.tokens
  }
  codeVerifier() {
    return this.kept.verifier ?? ''
  }
}

const connect = async (url: string, application: Application): Promise<Client> => {
  const client = new Client({ name: 'official', version: '1.0.0' })
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { authProvider: application }))
  return client
}

/** From the bare URL to a connected client. */
async function logIn(world: World, path: string, application: Application, subject = 'alice'): Promise<Client> {
  await expect(connect(`${world.url}${path}`, application)).rejects.toThrow(UnauthorizedError)
  const answer = await world.userAt(application.sentTo?.href ?? '', { subject })
  const transport = new StreamableHTTPClientTransport(new URL(`${world.url}${path}`), { authProvider: application })
  await transport.finishAuth(answer.searchParams.get('code') ?? '')
  return connect(`${world.url}${path}`, application)
}

const call = async (client: Client): Promise<string> => {
  const { tools } = await client.listTools()
  expect(tools.length).toBeGreaterThan(0)
  return JSON.stringify((await client.callTool({ name: 'show_request', arguments: {} })).content)
}

describe('the official client, from the bare MCP URL', () => {
  it('reaches a tool result with a static credential behind the login', async () => {
    const world = await openWorld(sockets)
    const application = new Application()
    const client = await logIn(world, '/mcp', application)
    expect(await call(client)).toContain('tools/call')
    await client.close()
  })

  it('reaches the backend with the token of its upstream', async () => {
    const world = await openWorld(sockets)
    const application = new Application()
    const client = await logIn(world, '/inject', application)
    expect(await call(client)).toContain('tools/call')
    const tokens = world.backend.requests('/open').map(({ headers }) => headers[headers.indexOf('authorization') + 1])
    expect(new Set(tokens).size).toBe(1)
    expect(tokens[0]).toMatch(/^Bearer [A-Za-z0-9_-]{43}$/)
    expect(tokens[0]).not.toContain(application.kept.tokens?.access_token)
    await client.close()
  })

  it('logs in again automatically when the session at the identity provider has expired', async () => {
    const time = { aheadMs: 0 }
    const world = await openWorld(sockets, { clock: { now: () => Date.now() + time.aheadMs } })
    const application = new Application()
    const client = await logIn(world, '/inject', application)
    expect(await call(client)).toContain('tools/call')
    const before = application.kept.tokens?.access_token
    await world.idp.revoke('alice')
    // The upstream's token is due, and there is no other to be had.
    time.aheadMs = 700_000
    application.sentTo = undefined
    await expect(client.listTools()).rejects.toThrow(UnauthorizedError)
    expect(application.sentTo).toBeDefined()
    time.aheadMs = 0
    const again = await world.userAt((application.sentTo as URL | undefined)?.href ?? '')
    const transport = new StreamableHTTPClientTransport(new URL(`${world.url}/inject`), { authProvider: application })
    await transport.finishAuth(again.searchParams.get('code') ?? '')
    const fresh = await connect(`${world.url}/inject`, application)
    expect(await call(fresh)).toContain('tools/call')
    expect(application.kept.tokens?.access_token).not.toBe(before)
    await fresh.close()
  })
})
