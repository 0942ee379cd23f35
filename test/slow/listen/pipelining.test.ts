import { afterEach, describe, expect, it, vi } from 'vitest'
import type { ClientResponse } from '../../../src/core/index.ts'
import { rawConnect } from '../../support/raw.ts'
import { createSockets } from '../../support/sockets.ts'
import { get, passTime, post, startListener } from '../../support/listen/harness.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

describe('requests that come before the answer to the one before', () => {
  it('are served one after the other, each when the answer before is out', async () => {
    const open: ClientResponse[] = []
    const listener = await startListener(sockets, (_request, response) => void open.push(response))
    const client = rawConnect(listener.url, post('/1', 'a') + post('/2', 'b') + get('/3'))
    await vi.waitFor(() => expect(open).toHaveLength(1))
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect(listener.served).toEqual(['POST /1'])
    open[0]?.end('one')
    await client.until(/one$/)
    await vi.waitFor(() => expect(listener.served).toEqual(['POST /1', 'POST /2']))
    open[1]?.end('two')
    await vi.waitFor(() => expect(open).toHaveLength(3))
    open[2]?.end('three')
    expect(await client.until(/three$/)).toMatch(/one.*two.*three$/s)
  })

  it('are not begun behind an answer that ends the connection', async () => {
    const listener = await startListener(sockets, (_request, response) => {
      response.writeHead(200, ['connection', 'close']).end('last')
    })
    const client = rawConnect(listener.url, get('/1') + get('/2'))
    await client.ended
    expect([listener.served, client.text().match(/HTTP/g)]).toEqual([['GET /1'], ['HTTP']])
  })

  it('are all answered, many of them in one packet too', async () => {
    const listener = await startListener(sockets, (request, response) => {
      setImmediate(() => response.end(`[${request.url}]`))
    })
    const targets = Array.from({ length: 100 }, (_, index) => `/${index}`)
    const client = rawConnect(listener.url, targets.map(get).join(''))
    const text = await client.until(/\[\/99\]/)
    expect(text.match(/\[\/\d+\]/g)).toEqual(targets.map((target) => `[${target}]`))
  })

  it('are all answered with the bodies that belong to them', async () => {
    const listener = await startListener(sockets, (request, response) => {
      let body = ''
      request.on('data', (chunk: Buffer) => (body += chunk.toString()))
      request.on('end', () => setImmediate(() => response.end(`[${body.length}]`)))
    })
    const lengths = [70_000, 1, 200_000, 0, 3]
    const client = rawConnect(listener.url, lengths.map((length) => post('/', 'x'.repeat(length))).join(''))
    const text = await client.until(/(\[\d+\].*){5}/s)
    expect(text.match(/\[\d+\]/g)).toEqual(lengths.map((length) => `[${length}]`))
  })

  it('are read no further while too many are unanswered', async () => {
    const listener = await startListener(sockets, () => {})
    const client = rawConnect(listener.url, get('/0'))
    await vi.waitFor(() => expect(listener.served).toHaveLength(1))
    const big = `GET /x HTTP/1.1\r\nHost: h\r\nX: ${'x'.repeat(15_000)}\r\n\r\n`
    // 60 MB: more than the buffers of both ends hold.
    for (let sent = 0; sent < 4000; sent++) client.socket.write(big)
    await new Promise((resolve) => setTimeout(resolve, 500))
    expect(client.socket.writableLength).toBeGreaterThan(10_000_000)
    client.socket.resetAndDestroy()
  })

  it('are answered without a limit on their number', async () => {
    const listener = await startListener(sockets, (request, response) => {
      setImmediate(() => response.end(`[${request.url}]`))
    })
    const client = rawConnect(listener.url, `${get('/').repeat(1500)}${get('/last')}`)
    const text = await client.until(/\[\/last\]/)
    expect(text.match(/\[\/\]/g)).toHaveLength(1500)
  })

  it('end the connection when none of them gets its turn for too long', async () => {
    const listener = await startListener(sockets, () => {})
    // More than waits without being a burden.
    const client = rawConnect(listener.url, get('/').repeat(5000))
    await vi.waitFor(() => expect(listener.served).toHaveLength(1))
    let isEnded = false
    void client.ended.then(() => (isEnded = true))
    await passTime(listener.clock, 4000, () => isEnded)
    expect(isEnded).toBe(true)
  })

  it('are not served any more when the client has left', async () => {
    const open: ClientResponse[] = []
    const listener = await startListener(sockets, (_request, response) => void open.push(response))
    const client = rawConnect(listener.url, get('/1') + get('/2'))
    await vi.waitFor(() => expect(open).toHaveLength(1))
    client.socket.resetAndDestroy()
    await vi.waitFor(() => expect(open[0]?.destroyed).toBe(true))
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect(listener.served).toEqual(['GET /1'])
  })
})

describe('what is malformed behind a request that is being answered', () => {
  it.each([
    ['no HTTP at all', 'nonsense\r\n\r\n', ['GET /1'], []],
    [
      'a broken body of a request that waits',
      'POST /2 HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n',
      ['GET /1'],
      // Read when its turn comes, and refused while it is served.
      ['POST /2'],
    ],
    ['garbage behind a request that waits', `${get('/2')}nonsense\r\n\r\n`, ['GET /1', 'GET /2'], []],
  ])('is refused when the answer is out: %s', async (_what, bytes, served, begun) => {
    const open: ClientResponse[] = []
    const listener = await startListener(sockets, (_request, response) => void open.push(response))
    const client = rawConnect(listener.url, get('/1') + bytes)
    await vi.waitFor(() => expect(open).toHaveLength(1))
    client.socket.write('more of it\r\n\r\n')
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect(client.text()).toBe('')
    for (let at = 0; at < served.length; at++) {
      await vi.waitFor(() => expect(open.length).toBeGreaterThan(at))
      open[at]?.end('fine')
    }
    const text = await client.until(/bad_request$/)
    expect(text.match(/HTTP\/1\.1 \d+/g)).toEqual([...served.map(() => 'HTTP/1.1 200'), 'HTTP/1.1 400'])
    expect(listener.served).toEqual([...served, ...begun])
  })
})
