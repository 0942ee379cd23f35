import { once } from 'node:events'
import { connect } from 'node:net'
import { afterAll, describe, expect, it, vi } from 'vitest'
import type { ClientRequest } from '../../../src/core/index.ts'
import { rawConnect } from '../../support/raw.ts'
import { createSockets } from '../../support/sockets.ts'
import { get, passTime, startListener } from '../../support/listen/harness.ts'

const sockets = createSockets()
afterAll(() => sockets.closeAll())

// They wait for the system for seconds, each on connections of its own.

/** More than the buffers of the system hold. */
const LARGE = Buffer.alloc(16 * 1024 * 1024, 'x')

describe.concurrent('a client that does not read', () => {
  it('holds one answer, however many it has asked for, and loses its connection', async () => {
    const listener = await startListener(sockets, (_request, response) => void response.end(LARGE))
    const client = rawConnect(listener.url, get('/').repeat(100))
    client.socket.pause()
    await vi.waitFor(() => expect(listener.served.length).toBeGreaterThan(0))
    const cut = () => listener.metrics.value('extauth_connections_cut_total', 'unread_answer')
    await passTime(listener.clock, 10_000, () => cut() > 0)
    expect(cut()).toBe(1)
    expect(listener.served).toHaveLength(1)
    client.socket.resume()
    expect(await client.ended).not.toBe('close')
    expect(client.text().length).toBeLessThan(LARGE.length)
  })

  it('is waited for as long as it takes a little now and then', async () => {
    const listener = await startListener(sockets, (_request, response) => {
      for (let piece = 0; piece < 256; piece++) response.write(LARGE.subarray(0, 64 * 1024))
      response.end()
    })
    const client = rawConnect(listener.url, get('/'))
    client.socket.pause()
    await vi.waitFor(() => expect(listener.served).toHaveLength(1))
    for (let look = 0; look < 6; look++) {
      listener.clock.advance(40_000)
      client.socket.resume()
      await new Promise((resolve) => setTimeout(resolve, 20))
      client.socket.pause()
      await new Promise((resolve) => setTimeout(resolve, 400))
    }
    client.socket.resume()
    await client.until(/0\r\n\r\n$/)
    expect(client.text().length).toBeGreaterThan(LARGE.length)
  })

  it('of which nothing is wanted is left alone', async () => {
    const listener = await startListener(sockets, (_request, response) => void response.write('begun'))
    const client = rawConnect(listener.url, get('/'))
    await client.until(/begun/)
    for (let look = 0; look < 3; look++) {
      listener.clock.advance(600_000)
      await new Promise((resolve) => setTimeout(resolve, 400))
    }
    expect(client.socket.readableEnded).toBe(false)
    expect(client.socket.destroyed).toBe(false)
  })
})

describe.concurrent('an abandoned body', () => {
  const head = (length: number): string => `POST / HTTP/1.1\r\nHost: h\r\nContent-Length: ${length}\r\n\r\n`

  it.each([
    ['the connection could stay', []],
    ['the connection was to end', ['connection', 'close']],
  ])('ends the connection when it does not come, although %s', async (_what, headers) => {
    const listener = await startListener(
      sockets,
      (_request, response) => void response.writeHead(404, headers).end('no'),
    )
    // It does not close its side when it sees ours closed.
    const client = connect({ port: Number(new URL(listener.url).port), host: '127.0.0.1', allowHalfOpen: true })
    sockets.closing({ close: () => client.destroy() })
    client.on('error', () => {}).write(`${head(60_000)}x`)
    await once(client, 'data')
    const cut = () => listener.metrics.value('extauth_connections_cut_total', 'unread_body')
    await passTime(listener.clock, 2000, () => cut() > 0)
    expect(cut()).toBe(1)
  })

  it('may not come a byte at a time for ever', async () => {
    const listener = await startListener(sockets, (_request, response) => void response.writeHead(404).end('no'))
    const client = rawConnect(listener.url, head(60_000))
    await client.until(/no/)
    const cut = () => listener.metrics.value('extauth_connections_cut_total', 'unread_body')
    let sent = 0
    const trickle = setInterval(() => sent++ < 1000 && client.socket.write('x'), 30)
    await passTime(listener.clock, 1000, () => cut() > 0)
    clearInterval(trickle)
    expect(cut()).toBe(1)
    // Longer than the silence that is allowed, so that it was the bound of all.
    expect(sent).toBeGreaterThan(60)
  })

  it('that comes leaves the connection as it was', async () => {
    const listener = await startListener(sockets, (request, response) => void response.end(`[${request.url}]`))
    const client = rawConnect(listener.url, head(50_000))
    await client.until(/\[\/\]/)
    client.socket.write('x'.repeat(50_000) + get('/next'))
    await client.until(/\[\/next\]/)
    listener.clock.advance(600_000)
    await new Promise((resolve) => setTimeout(resolve, 1100))
    client.socket.write(get('/later'))
    expect(await client.until(/\[\/later\]/)).toContain('200 OK')
  })

  it.each([
    ['is unread', () => {}],
    ['is partly read', (request: ClientRequest) => void request.once('data', () => request.pause())],
    [
      'was read and abandoned',
      (request: ClientRequest) =>
        void request.once('data', () => {
          // As undici does, so that the connection stays.
          Object.assign(request, { socket: null })
          request.destroy()
        }),
    ],
  ])('does not keep the client from reading why, when %s', async (_what, read) => {
    const listener = await startListener(sockets, (request, response) => {
      read(request)
      setTimeout(() => response.writeHead(413, ['connection', 'close']).end('too large'), 20)
    })
    // Reads nothing before all is sent, as simple clients do.
    const length = 20_000_000
    const client = rawConnect(listener.url, '')
    client.socket.pause()
    client.socket.write(head(length))
    for (let sent = 0; sent < length; sent += 1_000_000) client.socket.write(Buffer.alloc(1_000_000))
    await new Promise<void>((resolve, reject) =>
      client.socket.write('', (error) => (error ? reject(error) : resolve())),
    )
    client.socket.resume()
    expect(await client.until(/too large/)).toMatch(/^HTTP\/1\.1 413 /)
    expect(await client.ended).toBe('end')
  })
})
