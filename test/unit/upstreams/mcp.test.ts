import { DemoInMemoryAuthProvider } from '@modelcontextprotocol/sdk/examples/server/demoInMemoryOAuthProvider.js'
import { mcpAuthRouter } from '@modelcontextprotocol/sdk/server/auth/router.js'
import express from 'express'
import { createServer } from 'node:http'
import { afterEach, describe, expect, it } from 'vitest'
import { Secret } from '../../../src/core/index.ts'
import { createOutbound } from '../../../src/net/index.ts'
import { createMcpUpstream, type McpUpstreamOptions, type UpstreamDeps } from '../../../src/upstreams/index.ts'
import { createManualClock, createRecordingLog, createTestSecrets } from '../../support/ports.ts'
import { createSockets, type Sockets } from '../../support/sockets.ts'
import { IN_TIME, LEG, NO_FILES } from '../../support/upstreams/rig.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

/** The authorization server of the official SDK's examples, and an MCP server that names it. */
async function startServers(all: Sockets) {
  const app = express()
  const server = createServer(app as Parameters<typeof createServer>[1])
  const issuer = `http://${await all.listen(server)}`
  const resources: (string | undefined)[] = []
  const provider = new DemoInMemoryAuthProvider((resource) => resources.push(resource?.href) > 0)
  app.use(mcpAuthRouter({ provider, issuerUrl: new URL(issuer), scopesSupported: ['mcp:tools'] }))
  const state = { issuer, challenge: true, resource: '', scope: '' }
  const backend = await all.http((request, response) => {
    if (request.url === '/.well-known/oauth-protected-resource/mcp') {
      response.setHeader('content-type', 'application/json')
      response.end(
        JSON.stringify({
          resource: state.resource,
          authorization_servers: [state.issuer],
          scopes_supported: ['mcp:tools'],
        }),
      )
      return
    }
    const scope = state.scope === '' ? '' : `, scope="${state.scope}"`
    const metadata = `${backend}/.well-known/oauth-protected-resource/mcp`
    response.writeHead(
      401,
      state.challenge ? { 'www-authenticate': `Bearer resource_metadata="${metadata}"${scope}` } : {},
    )
    response.end()
  })
  state.resource = `${backend}/mcp`
  return { state, backend, provider, resources }
}

const registrations = (): NonNullable<UpstreamDeps['registration']> => {
  const kept = new Map<string, Buffer>()
  return {
    redirectUris: () => [LEG.redirectUri],
    kept: {
      async obtain(id, isUsable, make) {
        const known = kept.get(JSON.stringify(id))
        if (known !== undefined && isUsable(known)) return known
        const made = await make()
        kept.set(JSON.stringify(id), made)
        return made
      },
      forget: (id) => Promise.resolve(void kept.delete(JSON.stringify(id))),
    },
  }
}

function open(endpoint: string, more: Partial<McpUpstreamOptions> = {}) {
  const clock = createManualClock()
  const upstream = sockets.closing(
    createMcpUpstream(
      {
        provider: { name: 'notes', allowPrivateIP: true },
        endpoint,
        scopes: [],
        client: undefined,
        clientMetadataUrl: undefined,
        ...more,
      },
      {
        clock,
        log: createRecordingLog(),
        secrets: createTestSecrets({}),
        ...NO_FILES,
        registration: registrations(),
        outbound: (options) => createOutbound({ ...options, clock, breaker: false, retry: false }),
      },
    ),
  )
  return { upstream, clock }
}

/** The browser: follows the authorization request, whose user agrees at once. */
async function visit(url: URL): Promise<URLSearchParams> {
  const response = await fetch(url, { redirect: 'manual' })
  return new URL(response.headers.get('location') ?? '').searchParams
}

describe('an upstream discovered from an MCP server', () => {
  it('registers, logs in and gets a token for the resource', async () => {
    const { backend, provider, resources } = await startServers(sockets)
    const { upstream } = open(`${backend}/mcp`)

    const url = await upstream.authorizationUrl(LEG)
    expect(url.searchParams.get('resource')).toBe(`${backend}/mcp`)
    expect(url.searchParams.get('scope')).toBe('mcp:tools')
    const { tokens, subject } = await upstream.finish(LEG, await visit(url))

    const verified = await provider.verifyAccessToken(tokens.accessToken.reveal())
    expect(verified.resource?.href).toBe(`${backend}/mcp`)
    expect(resources).toEqual([`${backend}/mcp`])
    expect(tokens.scopes).toEqual(['mcp:tools'])
    const client = await provider.clientsStore.getClient(verified.clientId)
    expect(client?.token_endpoint_auth_method).toBe('none')
    expect(subject).not.toBe('')
  })

  it.each([
    ['those of the challenge', 'a:b c:d', [], 'a:b c:d'],
    ['the configured ones', 'a:b', ['own'], 'own'],
  ])('requests scopes: %s', async (_name, scope, scopes, expected) => {
    const { backend, state } = await startServers(sockets)
    state.scope = scope
    const url = await open(`${backend}/mcp`, { scopes }).upstream.authorizationUrl({ ...LEG, scopes: ['more'] })
    expect(url.searchParams.get('scope')).toBe(`${expected} more`)
  })

  it('finds the metadata without a challenge', async () => {
    const { backend, state } = await startServers(sockets)
    state.challenge = false
    const url = await open(`${backend}/mcp`).upstream.authorizationUrl(LEG)
    expect(url.origin).toBe(state.issuer)
  })

  it('refuses metadata for a different resource', async () => {
    const { backend, state } = await startServers(sockets)
    state.resource = 'https://other.example/mcp'
    await expect(open(`${backend}/mcp`).upstream.authorizationUrl(LEG)).rejects.toMatchObject({
      code: 'identity_provider_error',
      detail: "notes: the MCP server's metadata are for a different resource",
    })
  })

  it('never sends a refresh token to a different authorization server', async () => {
    const [first, second] = [await startServers(sockets), await startServers(sockets)]
    const { upstream, clock } = open(`${first.backend}/mcp`)
    const login = await upstream.finish(LEG, await visit(await upstream.authorizationUrl(LEG)))
    first.state.issuer = second.state.issuer
    clock.advance(11 * 60_000)

    const tokens = { ...login.tokens, refreshToken: new Secret('refresh-token') }
    await expect(upstream.refresh(tokens, login.subject, IN_TIME)).rejects.toMatchObject({ code: 'no_session' })
  })

  it('uses a configured client without registering', async () => {
    const { backend, provider } = await startServers(sockets)
    const { upstream } = open(`${backend}/mcp`, { client: { clientId: 'ours' } })
    const url = await upstream.authorizationUrl(LEG)
    expect(url.searchParams.get('client_id')).toBe('ours')
    expect(await provider.clientsStore.getClient('ours')).toBeUndefined()
  })
})
