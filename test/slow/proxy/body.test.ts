import { createHash } from 'node:crypto'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { type Credential, Failure, NO_CREDENTIAL, MONOTONIC_CLOCK } from '../../../src/core/index.ts'
import { rawConnect } from '../../support/raw.ts'
import { createSockets } from '../../support/sockets.ts'
import {
  createRoute,
  headersIn,
  runtimeOf,
  startProxy,
  startRawBackend,
  type RouteOptions,
} from '../../support/proxy/harness.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

async function start(options: RouteOptions = {}, more: Parameters<typeof startProxy>[3] = {}) {
  const backend = await startRawBackend(sockets)
  const proxy = await startProxy(sockets, runtimeOf([createRoute(sockets, backend.origin, options)]), {}, more)
  return { backend, proxy }
}

const statusOf = (line: string): unknown => (JSON.parse(line) as { status?: number }).status
const head = (lines: string): string => `POST / HTTP/1.1\r\nHost: localhost\r\n${lines}\r\n`
const chunk = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`

describe('bodies', () => {
  it.each([
    ['a small body keeps its length', 'Content-Length: 3\r\n', 'abc', ['content-length', '3'], 'abc'],
    ['an empty body has length 0', 'Content-Length: 0\r\n', '', ['content-length', '0'], ''],
    [
      'a large body keeps its length',
      'Content-Length: 1048577\r\n',
      'x'.repeat(1048577),
      ['content-length', '1048577'],
      'x'.repeat(1048577),
    ],
  ])('%s', async (_, lines, body, header, ending) => {
    const { backend, proxy } = await start()
    await rawConnect(proxy.url, head(lines) + body).until(/^HTTP\/1\.1 200 /)
    expect(headersIn(backend.received[0])).toContainEqual(header)
    expect(backend.received[0]?.endsWith(`\r\n\r\n${ending}`)).toBe(true)
  })

  it('a small chunked body that is soon complete is kept and sent with its length', async () => {
    const { backend, proxy } = await start({}, { deadlines: { unannouncedBodyMs: 5000 } })
    const client = rawConnect(proxy.url, `${head('Transfer-Encoding: chunked\r\n')}${chunk('ab')}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
    client.socket.write(`${chunk('c')}0\r\n\r\n`)
    await client.until(/^HTTP\/1\.1 200 /)
    expect(headersIn(backend.received[0])).toContainEqual(['content-length', '3'])
    expect(backend.received[0]).toMatch(/\r\n\r\nabc$/)
  })

  it('a chunked body that takes its time is sent chunked, piece by piece', async () => {
    const { backend, proxy } = await start()
    const client = rawConnect(proxy.url, `${head('Transfer-Encoding: chunked\r\n')}${chunk('a')}${chunk('b')}`)
    const startedAt = performance.now()
    await vi.waitFor(() => expect(backend.received[0] ?? '').toMatch(/\r\n2\r\nab/), { timeout: 5000, interval: 5 })
    // About 30 ms on an idle machine.
    expect(performance.now() - startedAt).toBeLessThan(4_000)
    client.socket.write(`${chunk('c')}0\r\n\r\n`)
    await client.until(/^HTTP\/1\.1 200 /)
    expect(headersIn(backend.received[0])).toContainEqual(['transfer-encoding', 'chunked'])
    expect(backend.received[0]).toMatch(/\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n$/)
  })

  it('a body of exactly 1 MiB is kept until it is whole, so that it can be sent again; a larger one goes out as it comes', async () => {
    const { backend, proxy } = await start()
    const most = 1024 * 1024
    const kept = rawConnect(proxy.url, `${head(`Content-Length: ${most}\r\n`)}${'x'.repeat(most - 1)}`)
    const larger = rawConnect(proxy.url, `${head(`Content-Length: ${most + 1}\r\n`)}${'y'.repeat(most)}`)
    const sizes = () => [...backend.received.join('').matchAll(/content-length: (\d+)/g)].map((match) => match[1])
    await vi.waitFor(() => expect(sizes()).toEqual([String(most + 1)]), 10_000)
    larger.socket.write('y')
    await larger.until(/^HTTP\/1\.1 200 /)
    expect(sizes()).toEqual([String(most + 1)])
    kept.socket.write('x')
    await kept.until(/^HTTP\/1\.1 200 /)
    expect(sizes()).toEqual([String(most + 1), String(most)])
  })

  it('a chunked body of more than 1 MiB is sent chunked, from its first byte', async () => {
    let received = ''
    const origin = await sockets.http((request, response) => {
      const hash = createHash('sha256')
      request
        .on('data', (data: Buffer) => hash.update(data))
        .on('end', () => {
          received = `${request.headers['transfer-encoding']} ${hash.digest('hex')}`
          response.end('done')
        })
    })
    const proxy = await startProxy(sockets, runtimeOf([createRoute(sockets, origin)]))
    const pieces = Array.from({ length: 60 }, (_, index) => String.fromCharCode(65 + index).repeat(30_000))
    const body = `${pieces.map(chunk).join('')}0\r\n\r\n`
    await rawConnect(proxy.url, head('Transfer-Encoding: chunked\r\n') + body).until(/done/)
    expect(received).toBe(`chunked ${createHash('sha256').update(pieces.join('')).digest('hex')}`)
  })

  it('a chunked body that the applier hashes is sent with its length', async () => {
    const { backend, proxy } = await start({ needsBody: true })
    const client = rawConnect(proxy.url, `${head('Transfer-Encoding: chunked\r\n')}${chunk('{"a"')}`)
    setTimeout(() => client.socket.write(`${chunk(':1}')}0\r\n\r\n`), 20)
    await client.until(/^HTTP\/1\.1 200 /)
    expect(backend.received[0]?.split('\r\n\r\n')[1]).toBe('{"a":1}')
    expect(headersIn(backend.received[0])).toContainEqual(['content-length', '7'])
    expect(headersIn(backend.received[0]).map(([name]) => name)).not.toContain('transfer-encoding')
  })

  it.each([
    ['announced', 'Content-Length: 101\r\n', 'x'.repeat(101)],
    ['announced and never sent', 'Content-Length: 5000000000\r\n', ''],
    ['chunked', 'Transfer-Encoding: chunked\r\n', `${chunk('x'.repeat(60))}${chunk('x'.repeat(60))}`],
  ])('a body that must be kept and is too large gets 413 (%s)', async (_, lines, body) => {
    const { backend, proxy } = await start({ needsBody: true, limits: { bufferedBody: 100 } })
    const client = rawConnect(proxy.url, head(lines) + body)
    expect(await client.until(/\}\}\}/)).toMatch(
      /^HTTP\/1\.1 413 .*The limit is 100 bytes\..*"reason":"body_too_large"/s,
    )
    expect(backend.received).toEqual([])
  })

  it('a body of exactly the limit is kept', async () => {
    const { proxy } = await start({ needsBody: true, limits: { bufferedBody: 100 } })
    await rawConnect(proxy.url, head('Content-Length: 100\r\n') + 'x'.repeat(100)).until(/^HTTP\/1\.1 200 /)
    const chunked = await rawConnect(
      proxy.url,
      `${head('Transfer-Encoding: chunked\r\n')}${chunk('x'.repeat(100))}0\r\n\r\n`,
    ).until(/^HTTP\/1\.1 200 /)
    expect(chunked).toContain('{}')
  })

  it.each([
    ['while it is gathered', 'ab'],
    ['in its first bytes', ''],
  ])('a body that is refused %s never gets to a backend', async (_what, good) => {
    const credential = vi.fn<() => Credential>(() => NO_CREDENTIAL)
    const { backend, proxy } = await start({ credential })
    const begun = good === '' ? '' : chunk(good)
    const client = rawConnect(proxy.url, head('Transfer-Encoding: chunked\r\n') + begun)
    client.socket.write('zz\r\n')
    expect(await client.until(/\}\}\}/)).toMatch(/^HTTP\/1\.1 400 .*"reason":"bad_request"/s)
    await vi.waitFor(() => expect(proxy.log.lines.map(statusOf)).toEqual([400]))
    await new Promise((resolve) => setTimeout(resolve, 100))
    expect(credential).not.toHaveBeenCalled()
    expect(backend.received).toEqual([])
  })

  it('a body that is refused while a credential is obtained for it never gets to a backend', async () => {
    const { promise, resolve } = Promise.withResolvers<Credential>()
    const credential = vi.fn<() => Promise<Credential>>(() => promise)
    const { backend, proxy } = await start({ credential })
    const client = rawConnect(proxy.url, `${head('Transfer-Encoding: chunked\r\n')}${chunk('ab')}`)
    await vi.waitFor(() => expect(credential).toHaveBeenCalled())
    client.socket.write('zz\r\n')
    await client.until(/^HTTP\/1\.1 400 /)
    resolve(NO_CREDENTIAL)
    await vi.waitFor(() => expect(proxy.log.lines).toHaveLength(1))
    expect(backend.received).toEqual([])
  })

  it('a body that is refused while it is streamed ends at its backend at once', async () => {
    const { backend, proxy } = await start()
    const client = rawConnect(proxy.url, `${head('Transfer-Encoding: chunked\r\n')}${chunk('ab')}`)
    await vi.waitFor(() => expect(backend.received[0] ?? '').toMatch(/\r\n2\r\nab/))
    const before = performance.now()
    client.socket.write('zz\r\n')
    await client.until(/^HTTP\/1\.1 400 /)
    await vi.waitFor(() => expect(proxy.log.lines.map(statusOf)).toEqual([400]))
    // A refused client has 2 s to read why; its backend has none.
    expect(performance.now() - before).toBeLessThan(1500)
    expect(backend.received[0]).not.toMatch(/0\r\n\r\n$/)
  })

  it('a client that waits for 100 Continue gets it once the caller is known', async () => {
    const { backend, proxy } = await start()
    const client = rawConnect(proxy.url, head('Content-Length: 3\r\nExpect: 100-continue\r\n'))
    await client.until(/^HTTP\/1\.1 100 Continue\r\n\r\n/)
    expect(backend.received).toEqual([])
    client.socket.write('abc')
    await client.until(/HTTP\/1\.1 200 /)
    expect(headersIn(backend.received[0]).map(([name]) => name)).not.toContain('expect')
  })

  it('a client that waits for 100 Continue and is refused never gets it', async () => {
    const { proxy } = await start({
      caller: () => {
        throw new Failure('missing_token')
      },
    })
    const client = rawConnect(proxy.url, head('Content-Length: 3\r\nExpect: 100-continue\r\n'))
    expect(await client.until(/\}\}\}/)).toMatch(/^HTTP\/1\.1 401 /)
  })

  it('the connection lives on after a refused request whose small body was not read', async () => {
    let refuses = true
    const { proxy } = await start({
      caller: () => {
        if (refuses) throw new Failure('missing_token')
        return { kind: 'anonymous' }
      },
    })
    const client = rawConnect(proxy.url, `${head('Content-Length: 3\r\n')}abc`)
    await client.until(/^HTTP\/1\.1 401 .*\}\}\}/s)
    refuses = false
    client.socket.write(`${head('Content-Length: 3\r\n')}abc`)
    expect(await client.until(/\}\}\}HTTP\/1\.1 200 /)).not.toContain('onnection: close')
  })

  it('a refused client that keeps sending can read why before the connection ends', async () => {
    const { proxy } = await start({
      caller: () => {
        throw new Failure('missing_token')
      },
    })
    const client = rawConnect(proxy.url, head('Content-Length: 3000000\r\n'))
    let sent = 0
    const pump = setInterval(() => {
      if (sent < 3_000_000 && client.socket.writable) client.socket.write('x'.repeat(100_000))
      sent += 100_000
    }, 1)
    const answer = await client.until(/\}\}\}/)
    clearInterval(pump)
    expect(answer).toMatch(/^HTTP\/1\.1 401 .*\r\nconnection: close\r\n/is)
    client.socket.end()
    expect(await client.ended).not.toBe('reset')
  })

  it('a client that is still sending can read the early answer of its backend', async () => {
    const origin = await sockets.http((request, response) => {
      request.once('data', () => response.writeHead(413).end('too much')).resume()
    })
    const proxy = await startProxy(sockets, runtimeOf([createRoute(sockets, origin)]))
    const client = rawConnect(proxy.url, '')
    client.socket.pause()
    client.socket.write(head('Content-Length: 20000000\r\n'))
    for (let sent = 0; sent < 20; sent++) client.socket.write(Buffer.alloc(1_000_000))
    await new Promise((resolve) => client.socket.write('', resolve))
    client.socket.resume()
    expect(await client.until(/too much/)).toMatch(/^HTTP\/1\.1 413 /)
    expect(await client.ended).toBe('end')
  })

  it.each([
    ['refuses our credential', '401 no'],
    ['leads elsewhere', '302 no\r\nlocation: http://elsewhere.example/'],
  ])(
    'a client that is still sending can send it all when its backend %s and has not ended its answer',
    async (_, said) => {
      const origin = await sockets.tcp((socket) => {
        socket.once('data', () => socket.pause().write(`HTTP/1.1 ${said}\r\ncontent-length: 20\r\n\r\nno`))
      })
      const proxy = await startProxy(sockets, runtimeOf([createRoute(sockets, origin)]))
      const client = rawConnect(proxy.url, head('Content-Length: 20000000\r\n'))
      expect(await client.until(/\}\}\}/)).toMatch(/^HTTP\/1\.1 502 /)
      for (let sent = 0; sent < 20; sent++) client.socket.write(Buffer.alloc(1_000_000))
      await new Promise((resolve) => client.socket.write('', resolve))
      expect(await client.ended).toBe('end')
    },
  )

  it('a body of many mebibytes arrives as it was sent', async () => {
    const hash = createHash('sha256')
    const origin = await sockets.http((request, response) => {
      request.on('data', (data: Buffer) => hash.update(data)).on('end', () => response.end('done'))
    })
    const proxy = await startProxy(sockets, runtimeOf([createRoute(sockets, origin)]))
    const bytes = Buffer.alloc(8 * 1024 * 1024, 'payload')
    expect(await (await fetch(proxy.url, { method: 'POST', body: bytes })).text()).toBe('done')
    expect(hash.digest('hex')).toBe(createHash('sha256').update(bytes).digest('hex'))
  })
})

describe('slow clients', () => {
  it('are not rejected as slow after a change of the system clock', async () => {
    const { backend, proxy } = await start({}, { monotonicClock: MONOTONIC_CLOCK })
    const client = rawConnect(proxy.url, `${head('Content-Length: 2\r\n')}a`)
    await new Promise((resolve) => setTimeout(resolve, 50))
    proxy.clock.advance(3_600_000)
    // The watch has looked.
    await new Promise((resolve) => setTimeout(resolve, 1200))
    client.socket.write('b')
    expect(await client.until(/\r\n\r\n/)).toContain(' 200 ')
    expect(backend.received[0]).toMatch(/\r\n\r\nab$/)
  })

  it('a kept body that does not arrive in time gets 408', async () => {
    const { backend, proxy } = await start({}, { deadlines: { keptBodyMs: 5000 } })
    const client = rawConnect(proxy.url, `${head('Content-Length: 5\r\n')}ab`)
    const timer = setInterval(() => proxy.clock.advance(5000), 100)
    expect(await client.until(/\}\}\}/)).toMatch(/^HTTP\/1\.1 408 .*"reason":"request_timeout"/s)
    clearInterval(timer)
    expect(backend.received).toEqual([])
  })

  it('a streamed body that stops gets 408 and the backend request is aborted', async () => {
    const aborted = Promise.withResolvers<void>()
    const origin = await sockets.http((request) => {
      request.resume().on('error', () => undefined)
      request.on('close', () => aborted.resolve())
    })
    const route = createRoute(sockets, origin)
    const proxy = await startProxy(sockets, runtimeOf([route]), {}, { deadlines: { bodyIdleMs: 5000 } })
    const client = rawConnect(proxy.url, head('Transfer-Encoding: chunked\r\n') + chunk('abc'))
    await new Promise((resolve) => setTimeout(resolve, 50))
    // The first look sees what has arrived until then; the silence counts from there.
    const timer = setInterval(() => proxy.clock.advance(5000), 100)
    expect(await client.until(/\}\}\}/)).toMatch(/^HTTP\/1\.1 408 .*connection: close/is)
    clearInterval(timer)
    client.socket.end()
    await aborted.promise
    await client.ended
    expect(proxy.log.lines.join('\n')).toContain('"reason":"request_timeout"')
  })

  it("a client that got 408 or 404 can't continue for ever", async () => {
    const { proxy } = await start({ path: '/known' }, { deadlines: { keptBodyMs: 5000 } })
    const lines = 'HTTP/1.1\r\nHost: localhost\r\nContent-Length: 60000\r\n\r\n'
    const clients = ['/known', '/nope'].map((target) => rawConnect(proxy.url, `POST ${target} ${lines}x`))
    const trickle = setInterval(() => {
      proxy.clock.advance(2000)
      for (const { socket } of clients) if (socket.writable) socket.write('x')
    }, 200)
    const [late, unknown] = await Promise.all(clients.map(async (client) => (await client.ended, client.text())))
    clearInterval(trickle)
    expect([late?.slice(9, 12), unknown?.slice(9, 12)]).toEqual(['408', '404'])
  })

  it('headers that do not arrive in time get 408', async () => {
    const { proxy } = await start({}, { deadlines: { headersMs: 100 } })
    const client = rawConnect(proxy.url, 'POST / HTTP/1.1\r\nHost: loc')
    expect(await client.until(/\}\}\}/)).toMatch(/^HTTP\/1\.1 408 .*"reason":"request_timeout"/s)
  })

  it('a malformed chunk gets 400 as long as nothing was answered', async () => {
    const { proxy } = await start({ needsBody: true })
    const client = rawConnect(proxy.url, `${head('Transfer-Encoding: chunked\r\n')}3\r\nabc\r\nxyz\r\n`)
    expect(await client.until(/\}\}\}/)).toMatch(/^HTTP\/1\.1 400 /)
    client.socket.end()
    await client.ended
    expect(proxy.log.lines.join('\n')).toContain('"status":400')
  })
})
