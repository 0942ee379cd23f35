import { afterEach, describe, expect, it, vi } from 'vitest'
import { rawConnect } from '../../support/raw.ts'
import { createSockets } from '../../support/sockets.ts'
import { createRoute, type RouteOptions, runtimeOf, type Started, startProxy } from '../../support/proxy/harness.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const MIB = 1024 * 1024
const head = (lines: string): string => `POST / HTTP/1.1\r\nHost: localhost\r\n${lines}\r\n`

async function start(
  deadlines: object = {},
  route: RouteOptions = {},
  listener: Parameters<typeof sockets.http>[0] = (request) => void request.resume().on('error', () => undefined),
  listen: object = {},
): Promise<Started> {
  const origin = await sockets.http(listener)
  return startProxy(sockets, runtimeOf([createRoute(sockets, origin, route)]), listen, { deadlines })
}

/** The logged reason of a request's end, while time passes until it ends. */
async function whyOf(proxy: Started): Promise<string> {
  const timer = setInterval(() => proxy.clock.advance(5000), 50)
  try {
    return await vi.waitFor(
      () => {
        const [, why] = /"why":"([^"]*)"/.exec(proxy.log.lines.join('\n')) ?? []
        if (why === undefined) throw new Error(proxy.log.lines.join('\n'))
        return why ?? ''
      },
      { timeout: 20_000, interval: 50 },
    )
  } finally {
    clearInterval(timer)
  }
}

describe('what a client is held to is named with its value:', () => {
  it('the time for a body that is kept', async () => {
    const proxy = await start({ keptBodyMs: 5000 })
    rawConnect(proxy.url, `${head('Content-Length: 5\r\n')}ab`)
    expect(await whyOf(proxy)).toBe('the body did not arrive in time; the limit is 5 s (fixed)')
  })

  it('the silence within a body that is streamed', async () => {
    const proxy = await start({ bodyIdleMs: 7000 })
    rawConnect(proxy.url, `${head('Transfer-Encoding: chunked\r\n')}3\r\nabc\r\n`)
    expect(await whyOf(proxy)).toBe('the body stalled; the limit is 7 s (fixed)')
  })

  it('the time for a header section', async () => {
    const proxy = await start({ headersMs: 100 })
    rawConnect(proxy.url, 'POST / HTTP/1.1\r\nHost: loc')
    expect(await whyOf(proxy)).toMatch(/; the limit is 100 ms \(fixed\)$/)
    expect(proxy.log.lines.join('\n')).toContain('connection refused')
  })

  it('the size of a body that must be kept', async () => {
    const proxy = await start({}, { needsBody: true, limits: { bufferedBody: 2048 } })
    rawConnect(proxy.url, head('Content-Length: 3000\r\n'))
    expect(await whyOf(proxy)).toBe(
      'the body must be kept and is too large; the limit is 2 KiB (limits.bufferedBody of the route)',
    )
  })

  it('the memory for all buffered bodies', async () => {
    const proxy = await start({}, { needsBody: true }, undefined, { bufferedBodiesBytes: 1024 })
    rawConnect(proxy.url, `${head('Content-Length: 1000\r\n')}x`)
    await vi.waitFor(() => expect(proxy.log.lines).toEqual([]))
    rawConnect(proxy.url, `${head('Content-Length: 1000\r\n')}${'x'.repeat(999)}`)
    rawConnect(proxy.url, `${head('Content-Length: 1000\r\n')}${'x'.repeat(999)}`)
    expect(await whyOf(proxy)).toMatch(/; the limit is 1 KiB \(listen\.bufferedBodiesLimit of the ProxyConfig\)$/)
  })

  it('the time in which an answer has to be taken', async () => {
    const proxy = await start({ unreadAnswerMs: 60_000 }, {}, (_request, response) => {
      response.writeHead(200, { 'content-length': 64 * MIB })
      for (let piece = 0; piece < 64; piece++) response.write(Buffer.alloc(MIB, 'x'))
    })
    const client = rawConnect(proxy.url, 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
    client.socket.pause()
    expect(await whyOf(proxy)).toBe(
      'the client reads its response at less than 240 bytes a second; the limit is 60 s (fixed)',
    )
  })
})
