import { afterEach, describe, expect, it } from 'vitest'
import { Browser, textOf } from '../../support/authserver/browser.ts'
import { BACKEND_TOKEN, openWorld } from '../../support/e2e/authserver/world.ts'
import { authConfig, proxyConfig, run } from '../../support/e2e/run.ts'
import { createSockets } from '../../support/sockets.ts'
import { startExampleServers } from '../../support/upstreams/example-servers.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

/** The proxy of one local user, before a remote MCP server. */
async function start(target: string) {
  const time = { aheadMs: 0 }
  const clock = { now: () => Date.now() + time.aheadMs }
  const proxy = sockets.closing(
    await run(
      {
        'own.json': authConfig('own', { type: 'bearerToken', bearerToken: { connectionName: 'notes' } }),
        'proxy.json': proxyConfig({
          auth: { mode: 'anonymous' },
          connections: {
            singleUser: true,
            storage: { type: 'memory' },
            providers: [{ name: 'notes', type: 'mcp', mcp: {} }],
          },
          routes: [{ name: 'mcp', path: '/mcp', target, externalAuthConfigRef: { name: 'own' } }],
        }),
      },
      { clock },
    ),
  )
  const send = async (method: string, params: object, headers: Record<string, string> = {}) => {
    const response = await fetch(`${proxy.url}/mcp`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    })
    return { session: response.headers.get('mcp-session-id') ?? '', text: await response.text() }
  }
  const browser = new Browser()
  /** Opens the link and consents; returns where the browser is sent. */
  const consent = async (text: string): Promise<URL> => {
    const link = /http:\S+\/connect\/[\w-]+/.exec(text)?.[0] ?? ''
    const away = await browser.press(await browser.get(link), 'continue')
    return new URL(away.location ?? '')
  }
  return { time, send, consent, browser, call: async () => (await send('tools/call', { name: 'read' })).text }
}

describe('a connection to a remote MCP server', () => {
  it('is made at the embedded server of another proxy, and used by calls through both', async () => {
    const world = await openWorld(sockets)
    const { send, consent, call, browser } = await start(`${world.url}/mcp`)

    const sent = await consent(await call())
    expect([sent.origin, sent.searchParams.get('resource')]).toEqual([world.url, `${world.url}/mcp`])
    expect(sent.searchParams.get('code_challenge_method')).toBe('S256')
    const back = await world.userAt(sent.href)
    expect(back.searchParams.get('iss')).toBe(world.url)
    expect(textOf(await browser.get(back.href))).toContain('Your account at notes is connected')

    const version = '2025-11-25'
    const opened = await send('initialize', {
      protocolVersion: version,
      capabilities: {},
      clientInfo: { name: 'test', version: '1' },
    })
    const headers = { 'mcp-session-id': opened.session, 'mcp-protocol-version': version }
    expect((await send('tools/call', { name: 'show_request', arguments: {} }, headers)).text).toContain('tools/call')
    const seen = world.backend.requests('/plain').at(-1)
    // The token of the other proxy went no further than to that.
    expect(seen?.headers).toContain(`Bearer ${BACKEND_TOKEN}`)
  }, 60_000)

  it('is made anew when the server names another authorization server, which never gets the old token', async () => {
    const [first, second] = [await startExampleServers(sockets), await startExampleServers(sockets)]
    const { time, consent, call, browser } = await start(`${first.backend}/mcp`)
    const connect = async (text: string): Promise<URL> => {
      const sent = await consent(text)
      const back = await fetch(sent, { redirect: 'manual' })
      expect(textOf(await browser.get(back.headers.get('location') ?? ''))).toContain('is connected')
      return sent
    }
    await connect(await call())
    expect(await call()).toContain('from the remote server')
    const [old = ''] = first.accepted
    expect([old.length > 20, first.registrations.length]).toEqual([true, 1])

    first.state.issuer = second.state.issuer
    first.state.accepts = second.provider
    time.aheadMs += 2000
    const prompted = await call()

    expect(prompted).toContain('notes ended this connection')
    const sent = await connect(prompted)
    expect(`${sent.origin}/`).toBe(second.state.issuer)
    expect(second.registrations).toHaveLength(1)
    expect(await call()).toContain('from the remote server')
    expect(first.accepted).toHaveLength(2)
    expect(first.accepted[1]).not.toBe(old)
    expect(second.sent.length).toBeGreaterThan(0)
    expect(second.sent.join('')).not.toContain(old)
  }, 60_000)
})
