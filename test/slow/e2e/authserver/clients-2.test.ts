import { UnauthorizedError } from '@modelcontextprotocol/client'
import { afterEach, describe, expect, it } from 'vitest'
import { createSockets } from '../../../support/sockets.ts'
import { Application, call, connect, finish, LEGACY, logIn } from '../../../support/e2e/authserver/application.ts'
import { openWorld } from '../../../support/e2e/authserver/world.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

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

  it('refreshes automatically when its access token has expired, without a login', async () => {
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

  it('logs in again automatically, as the same client, when the session at the identity provider has expired', async () => {
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
