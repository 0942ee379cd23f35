import { once } from 'node:events'
import { afterEach, describe, expect, it, vi } from 'vitest'
import type { ClientRequest, ClientResponse } from '../../../src/core/index.ts'
import { rawConnect } from '../../support/raw.ts'
import { createSockets } from '../../support/sockets.ts'
import { get, post, startListener } from '../../support/listen/harness.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

interface Exchange {
  readonly request: ClientRequest
  readonly response: ClientResponse
}

/** A listener whose requests to `/held` are left to the test, and all others answered. */
async function start() {
  const held: Exchange[] = []
  const listener = await startListener(sockets, (request, response) => {
    if (request.url === '/held') held.push({ request, response })
    else response.end(`[${request.url}]`)
  })
  const next = async (): Promise<Exchange> => {
    await vi.waitFor(() => expect(held).not.toHaveLength(0))
    return held.shift() as Exchange
  }
  return { listener, next }
}

const headOf = (length: number): string => post('/held', 'x'.repeat(length)).slice(0, -length)

describe('the body of a request', () => {
  it.each([1, 70_000, 100_000, 130_000, 300_000])('of %i bytes that is read late stops nothing', async (length) => {
    const { listener, next } = await start()
    const client = rawConnect(listener.url, post('/held', 'x'.repeat(length)))
    const { request, response } = await next()
    const enough = Math.min(length, request.readableHighWaterMark)
    await vi.waitFor(() => expect(request.socket.bytesRead).toBeGreaterThanOrEqual(enough))
    // The client runs in this process as well.
    await new Promise((resolve) => setTimeout(resolve, 50))
    let read = 0
    request.on('data', (chunk: Buffer) => (read += chunk.length))
    await once(request, 'end')
    expect(read).toBe(length)
    response.end('[held]')
    await client.until(/\[held\]/)
    client.socket.write(get('/next'))
    await client.until(/\[\/next\]/)
  })

  it('is read no faster than it is taken', async () => {
    const { listener, next } = await start()
    const client = rawConnect(listener.url, post('/held', 'x'.repeat(16 * 1024 * 1024)))
    const { request } = await next()
    await new Promise((resolve) => setTimeout(resolve, 300))
    expect(request.socket.bytesRead).toBeLessThan(1024 * 1024)
    expect(client.socket.writableLength).toBeGreaterThan(0)
  })

  it('is discarded when it arrives in unread chunks, and the next request is served', async () => {
    const { listener, next } = await start()
    const client = rawConnect(listener.url, headOf(300_000))
    const { request, response } = await next()
    for (let sent = 0; sent < 3; sent++) {
      const before = request.socket.bytesRead
      client.socket.write('x')
      await vi.waitFor(() => expect(request.socket.bytesRead).toBe(before + 1))
    }
    response.end('[held]')
    await client.until(/\[held\]/)
    client.socket.write('x'.repeat(299_997) + get('/next'))
    await client.until(/\[\/next\]/)
    expect(request.listenerCount('data')).toBe(0)
  })

  it('that is whole is the reader’s, whatever comes behind it', async () => {
    const { listener, next } = await start()
    const client = rawConnect(listener.url, post('/held', 'x'.repeat(200_000)) + get('/next'))
    const { request, response } = await next()
    await new Promise((resolve) => setTimeout(resolve, 50))
    let read = ''
    for await (const chunk of request) read += String(chunk)
    expect(read).toBe('x'.repeat(200_000))
    response.end('[held]')
    expect(await client.until(/\[\/next\]/)).toMatch(/\[held\][^]*\[\/next\]$/)
  })

  it('breaks off where its client leaves', async () => {
    const { listener, next } = await start()
    const client = rawConnect(listener.url, `${headOf(1000)}x`)
    const { request, response } = await next()
    const errors: Error[] = []
    let isClosed = false
    request
      .on('error', (error) => errors.push(error))
      .on('close', () => (isClosed = true))
      .resume()
    client.socket.resetAndDestroy()
    await vi.waitFor(() => expect([isClosed, response.destroyed]).toEqual([true, true]))
    expect(errors.map((error) => error.message)).toEqual(['aborted'])
    expect([request.complete, request.readableEnded]).toEqual([false, false])
  })

  it('breaks off where its client leaves after an early answer', async () => {
    const { listener, next } = await start()
    const client = rawConnect(listener.url, `${headOf(1000)}x`)
    const { request, response } = await next()
    let isClosed = false
    request
      .on('error', () => {})
      .on('close', () => (isClosed = true))
      .resume()
    response.end('[held]')
    await client.until(/\[held\]/)
    client.socket.resetAndDestroy()
    await vi.waitFor(() => expect(isClosed).toBe(true))
    expect(request.complete).toBe(false)
  })
})

describe('a listener that stops', () => {
  const STRANGE = 'PROPFIND /next HTTP/1.1\r\nHost: h\r\n\r\n'

  it.each([get('/next'), STRANGE])('begins nothing behind an answer that is being given: %j', async (behind) => {
    const { listener, next } = await start()
    const client = rawConnect(listener.url, get('/held') + behind)
    const { response } = await next()
    response.writeHead(200, ['content-length', '6']).write('[he')
    await client.until(/\[he/)
    listener.stop()
    response.end('ld]')
    expect(await client.ended).toBe('end')
    expect([client.text().endsWith('[held]'), listener.served]).toEqual([true, ['GET /held']])
  })

  it('ends a connection whose answer is out when the rest of the body has come', async () => {
    const { listener, next } = await start()
    const client = rawConnect(listener.url, `${headOf(1000)}x`)
    const { response } = await next()
    response.end('[held]')
    await client.until(/\[held\]/)
    listener.stop()
    client.socket.write('x'.repeat(999))
    expect(await client.ended).toBe('end')
  })
})
