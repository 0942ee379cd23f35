import { afterEach, describe, expect, it } from 'vitest'
import { Secret } from '../../../src/core/index.ts'
import { createOutbound } from '../../../src/net/index.ts'
import { createMcpUpstream, type McpUpstreamOptions, type UpstreamDeps } from '../../../src/upstreams/index.ts'
import { createManualClock, createRecordingLog, createTestSecrets } from '../../support/ports.ts'
import { createSockets } from '../../support/sockets.ts'
import { startExampleServers } from '../../support/upstreams/example-servers.ts'
import { IN_TIME, LEG, NO_FILES } from '../../support/upstreams/rig.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const keptRegistrations = (): NonNullable<UpstreamDeps['registration']> => {
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
        registration: keptRegistrations(),
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
    const { backend, provider, resources, registrations } = await startExampleServers(sockets)
    const { upstream } = open(`${backend}/mcp`)

    const url = await upstream.authorizationUrl(LEG)
    expect(registrations).toMatchObject([{ application_type: 'web' }])
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
    const { backend, state } = await startExampleServers(sockets)
    state.scope = scope
    const url = await open(`${backend}/mcp`, { scopes }).upstream.authorizationUrl({ ...LEG, scopes: ['more'] })
    expect(url.searchParams.get('scope')).toBe(`${expected} more`)
  })

  it('finds the metadata without a challenge', async () => {
    const { backend, state } = await startExampleServers(sockets)
    state.challenge = false
    const url = await open(`${backend}/mcp`).upstream.authorizationUrl(LEG)
    expect(`${url.origin}/`).toBe(state.issuer)
  })

  it('refuses metadata for a different resource', async () => {
    const { backend, state } = await startExampleServers(sockets)
    state.resource = 'https://other.example/mcp'
    await expect(open(`${backend}/mcp`).upstream.authorizationUrl(LEG)).rejects.toMatchObject({
      code: 'identity_provider_error',
      detail: "notes: the MCP server's metadata are for a different resource",
    })
  })

  it('never sends a refresh token to a different authorization server', async () => {
    const [first, second] = [await startExampleServers(sockets), await startExampleServers(sockets)]
    const { upstream, clock } = open(`${first.backend}/mcp`)
    const login = await upstream.finish(LEG, await visit(await upstream.authorizationUrl(LEG)))
    first.state.issuer = second.state.issuer
    clock.advance(11 * 60_000)

    const tokens = { ...login.tokens, refreshToken: new Secret('refresh-token') }
    await expect(upstream.refresh(tokens, login.subject, IN_TIME)).rejects.toMatchObject({ code: 'no_session' })
  })

  it('never revokes a token at a different authorization server', async () => {
    const [first, second] = [await startExampleServers(sockets), await startExampleServers(sockets)]
    const { upstream, clock } = open(`${first.backend}/mcp`)
    const { tokens, subject } = await upstream.finish(LEG, await visit(await upstream.authorizationUrl(LEG)))
    await upstream.revoke?.(tokens, subject)
    expect(first.revoked).toEqual([tokens.accessToken.reveal()])
    first.state.issuer = second.state.issuer
    clock.advance(11 * 60_000)

    await upstream.revoke?.(tokens, subject)

    expect([first.revoked.length, second.revoked]).toEqual([1, []])
  })

  it('never redeems a code at a different authorization server, and asks again soon', async () => {
    const [first, second] = [await startExampleServers(sockets), await startExampleServers(sockets)]
    const { upstream, clock } = open(`${first.backend}/mcp`)
    const url = await upstream.authorizationUrl(LEG)
    first.state.issuer = second.state.issuer
    clock.advance(1000)

    const back = { ...LEG, sentTo: url.origin + url.pathname }
    await expect(upstream.finish(back, await visit(url))).rejects.toMatchObject({
      detail: 'notes: the authorization server changed meanwhile',
    })
    expect(`${(await upstream.authorizationUrl(LEG)).origin}/`).toBe(second.state.issuer)
  })

  it('uses a configured client without registering', async () => {
    const { backend, provider } = await startExampleServers(sockets)
    const { upstream } = open(`${backend}/mcp`, { client: { clientId: 'ours' } })
    const url = await upstream.authorizationUrl(LEG)
    expect(url.searchParams.get('client_id')).toBe('ours')
    expect(await provider.clientsStore.getClient('ours')).toBeUndefined()
  })
})
