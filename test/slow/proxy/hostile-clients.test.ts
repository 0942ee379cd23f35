import type { Socket } from 'node:net'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { ANONYMOUS, type Caller, type Matched } from '../../../src/core/index.ts'
import { rawConnect } from '../../support/raw.ts'
import { createSockets } from '../../support/sockets.ts'
import { createRoute, runtimeOf, startProxy } from '../../support/proxy/harness.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const HEAD = 'HTTP/1.1\r\nHost: localhost\r\n'
const UPGRADE = `GET /ws ${HEAD}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n`
const CONNECT = `CONNECT elsewhere:1 ${HEAD}\r\n`

/** A backend that never answers `/slow` and begins a stream at `/stream`; counts what it is still working on. */
async function start() {
  const open = new Set<string>()
  const origin = await sockets.http((request, response) => {
    const url = request.url ?? ''
    open.add(url)
    response.on('close', () => open.delete(url))
    if (url === '/stream') response.writeHead(200, { 'content-type': 'text/event-stream' }).write(': hi\n\n')
    else if (url !== '/slow') response.end('ok')
  })
  const connections = new Set<Socket>()
  const caller = ({ inbound }: Matched): Caller => {
    connections.add(inbound.request.socket)
    return ANONYMOUS
  }
  const proxy = await startProxy(sockets, runtimeOf([createRoute(sockets, origin, { allowUpgrade: true, caller })]))
  const stillServes = async (): Promise<string> => (await fetch(`${proxy.url}/fine`)).text()
  return { proxy, open, connections, stillServes }
}

describe('a client that does not wait for the answer before', () => {
  it.each([
    ['an upgrade', UPGRADE],
    ['CONNECT', CONNECT],
  ])('gets nothing in another protocol before that answer is out: %s', async (_what, next) => {
    const { proxy, open, stillServes } = await start()
    for (const path of ['/slow', '/stream']) {
      const client = rawConnect(proxy.url, `GET ${path} ${HEAD}\r\n`)
      await vi.waitFor(() => expect(open).toContain(path))
      if (path === '/stream') await client.until(/: hi/)
      const before = client.text()
      client.socket.write(next)
      await new Promise((done) => setTimeout(done, 100))
      expect(client.text()).toBe(before)
      expect(open.has('/ws')).toBe(false)
      client.socket.destroy()
      await vi.waitFor(() => expect(open.size).toBe(0))
    }
    expect(await stillServes()).toBe('ok')
  })

  it('gets the other protocol when its turn comes', async () => {
    const { proxy } = await start()
    const client = rawConnect(proxy.url, `GET /one ${HEAD}\r\nGET /two ${HEAD}\r\n${UPGRADE}`)
    const text = await client.until(/(ok[^]*){3}/)
    expect(text.match(/HTTP\/1\.1 200/g)).toHaveLength(3)
  })

  it('releases all of its requests when it leaves', async () => {
    const { proxy, open } = await start()
    const client = rawConnect(proxy.url, `GET /slow ${HEAD}\r\nGET /stream ${HEAD}\r\n`)
    await vi.waitFor(() => expect(open).toContain('/slow'))
    client.socket.destroy()
    await vi.waitFor(() => expect(open.size).toBe(0))
    await vi.waitFor(() => expect(proxy.log.lines.filter((line) => /client_gone|aborted/.test(line))).toHaveLength(1))
  })
})

describe('a client whose connection is no longer read', () => {
  it('is seen leaving some time after its long upload began to wait behind a stream', async () => {
    const { proxy, open } = await start()
    const upload = `POST /fine ${HEAD}Content-Length: 20000000\r\n\r\n`
    const client = rawConnect(proxy.url, `GET /stream ${HEAD}\r\n${upload}${'x'.repeat(1_000_000)}`)
    await client.until(/: hi/)
    await new Promise((done) => setTimeout(done, 50))
    client.socket.resetAndDestroy()
    const time = setInterval(() => proxy.clock.advance(10_000), 500)
    await vi.waitFor(() => expect(open.size).toBe(0), 15_000)
    clearInterval(time)
  })

  it('takes an answer with it that Node has forgotten', async () => {
    const { proxy, open, connections } = await start()
    const client = rawConnect(proxy.url, `GET /slow ${HEAD}\r\n`)
    await vi.waitFor(() => expect(open.size).toBe(1))
    // As Node does with any upgrade request; it may come in between the end of an answer and that of the connection.
    const [socket] = connections
    for (const listener of socket?.listeners('close') ?? [])
      if (listener.name === 'bound socketOnClose') socket?.off('close', listener as () => void)
    client.socket.destroy()
    await vi.waitFor(() => expect(open.size).toBe(0))
  })
})

describe('a client that asked for an upgrade and got a stream', () => {
  it.each(['end', 'destroy'] as const)('ends the stream when it leaves (%s)', async (leave) => {
    const { proxy, open } = await start()
    const client = rawConnect(proxy.url, UPGRADE.replace('/ws', '/stream'))
    await client.until(/: hi/)
    client.socket[leave]()
    await vi.waitFor(() => expect(open.size).toBe(0))
  })
})

describe('a client that leaves before its upgrade is answered', () => {
  it.each(['/slow', '/stream'])('is not waited for (%s)', async (target) => {
    const { proxy, open } = await start()
    const client = rawConnect(proxy.url, UPGRADE.replace('/ws', target))
    client.socket.end()
    await client.ended
    await vi.waitFor(() => expect(proxy.log.lines.join()).toMatch(/client_gone|aborted/))
    await vi.waitFor(() => expect(open.size).toBe(0))
  })

  it.each(['end', 'resetAndDestroy'] as const)('is detected as gone behind unread bytes (%s)', async (leave) => {
    const { proxy, open } = await start()
    const client = rawConnect(proxy.url, `${UPGRADE.replace('/ws', '/slow')}early bytes`)
    await vi.waitFor(() => expect(open.size).toBe(1))
    client.socket[leave]()
    await vi.waitFor(() => expect(open.size).toBe(0))
  })

  it('may not send more than 128 KiB ahead', async () => {
    const { proxy, open } = await start()
    const client = rawConnect(proxy.url, `${UPGRADE.replace('/ws', '/slow')}${'x'.repeat(400_000)}`)
    await client.ended
    expect(client.text()).toBe('')
    await vi.waitFor(() => expect(open.size).toBe(0))
  })
})

describe('a client that resets the connection', () => {
  it.each([
    ['CONNECT', CONNECT],
    ['an upgrade', UPGRADE],
    ['a request', `GET /fine ${HEAD}\r\n`],
    ['nothing that is HTTP', '\0\r\n\r\n'],
  ])('after %s affects no other client', async (_what, text) => {
    const { proxy, stillServes } = await start()
    const resets = Array.from({ length: 40 }, async (_, index) => {
      const client = rawConnect(proxy.url, text)
      await new Promise((done) => client.socket.once('connect', done))
      await new Promise((done) => setTimeout(done, index % 8))
      client.socket.resetAndDestroy()
      await client.ended
    })
    await Promise.all(resets)
    expect(await stillServes()).toBe('ok')
  })
})

describe('a client that leaves during authentication', () => {
  it('is forgotten at once, although its body never comes', async () => {
    const { promise: isKnown, resolve: know } = Promise.withResolvers<undefined>()
    const origin = await sockets.http((_request, response) => void response.end('ok'))
    const caller = async () => {
      await isKnown
      return { kind: 'anonymous' } as const
    }
    const proxy = await startProxy(sockets, runtimeOf([createRoute(sockets, origin, { caller })]))
    const client = rawConnect(proxy.url, `POST / ${HEAD}Content-Length: 10\r\n\r\nhalf`)
    await new Promise((done) => setTimeout(done, 50))
    client.socket.resetAndDestroy()
    await client.ended
    await new Promise((done) => setTimeout(done, 50))
    know(undefined)
    await vi.waitFor(() => expect(proxy.log.lines.join()).toContain('client_gone'))
  })
})
