import type { ServerResponse } from 'node:http'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { Failure } from '../../../src/core/index.ts'
import { createCaller, START_MS } from '../../support/ports.ts'
import { rawConnect } from '../../support/raw.ts'
import { createSockets } from '../../support/sockets.ts'
import { createRoute, runtimeOf, startProxy, type RouteOptions } from '../../support/proxy/harness.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

/** A backend that opens an event stream and leaves it to the test. */
async function start(options: RouteOptions = {}) {
  const streams: ServerResponse[] = []
  const closed: string[] = []
  const origin = await sockets.http((request, response) => {
    request.resume()
    response.on('close', () => closed.push(request.method ?? ''))
    streams.push(response.writeHead(200, { 'content-type': 'text/event-stream' }))
    response.write('data: 1\n\n')
  })
  const proxy = await startProxy(sockets, runtimeOf([createRoute(sockets, origin, options)]))
  const open = (method: string) =>
    rawConnect(proxy.url, `${method} / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n`)
  return { proxy, streams, closed, open }
}

const gauge = 'extauth_active_streams'

describe('event streams', () => {
  it('events leave as they arrive, and are counted while they run', async () => {
    const { proxy, streams, open } = await start()
    const client = open('GET')
    await client.until(/data: 1\n\n/)
    expect(proxy.metrics.value(gauge)).toBe(1)
    streams[0]?.write('data: 2\n\n')
    await client.until(/data: 2\n\n/)
    streams[0]?.end('data: 3\n\n')
    await client.until(/data: 3\n\n\r\n0\r\n\r\n$/)
    await vi.waitFor(() => expect(proxy.metrics.value(gauge)).toBe(0))
  })

  it('a GET stream ends cleanly when the token of the caller does', async () => {
    const { proxy, closed, open } = await start({ caller: () => createCaller({ expiresAtMs: START_MS + 150 }) })
    const client = open('GET')
    await client.until(/data: 1\n\n/)
    // The timer runs on real time and then asks the clock.
    setTimeout(() => proxy.clock.advance(150), 100)
    await client.until(/\r\n0\r\n\r\n$/)
    await vi.waitFor(() => expect(closed).toEqual(['GET']))
    await vi.waitFor(() => expect(proxy.log.lines).toHaveLength(1))
    expect(JSON.parse(proxy.log.lines[0] ?? '')).toMatchObject({ status: 200, method: 'GET' })
  })

  it('a GET stream ends cleanly when the session of the caller was revoked, and no answer to a POST', async () => {
    const revoked = new Set<string>()
    const { proxy, streams, closed, open } = await start({
      caller: () => createCaller({ subject: 'alice' }),
      isRevoked: ({ subject }) => revoked.has(subject),
    })
    const [stream, answer] = [open('GET'), open('POST')]
    await Promise.all([stream, answer].map((client) => client.until(/data: 1\n\n/)))
    revoked.add('alice')
    await stream.until(/\r\n0\r\n\r\n$/)
    await vi.waitFor(() => expect(closed).toEqual(['GET']))
    expect(proxy.metrics.value(gauge)).toBe(1)
    for (const one of streams) one.end('data: late\n\n')
    expect(await answer.until(/\r\n0\r\n\r\n$/)).toContain('data: late')
  })

  it('a GET stream stays open while the revoked sessions are unknown, and ends when its session is among them', async () => {
    let state: 'unknown' | 'revoked' = 'unknown'
    let checks = 0
    const { proxy, open } = await start({
      caller: () => createCaller(),
      isRevoked: () => {
        checks += 1
        if (state === 'unknown') throw new Failure('store_unavailable', { detail: 'the list cannot be read' })
        return true
      },
    })
    const stream = open('GET')
    await stream.until(/data: 1\n\n/)
    await vi.waitFor(() => expect(checks).toBeGreaterThan(1), { timeout: 5_000 })
    expect(proxy.metrics.value(gauge)).toBe(1)
    state = 'revoked'
    await stream.until(/\r\n0\r\n\r\n$/)
  })

  it('the answer to a POST runs on after the end of the token', async () => {
    const { proxy, streams, open } = await start({ caller: () => createCaller({ expiresAtMs: START_MS + 50 }) })
    const client = open('POST')
    await client.until(/data: 1\n\n/)
    proxy.clock.advance(60_000)
    await new Promise((resolve) => setTimeout(resolve, 120))
    streams[0]?.end('data: late\n\n')
    expect(await client.until(/\r\n0\r\n\r\n$/)).toContain('data: late')
  })

  it('the backend request is aborted at once when the client leaves', async () => {
    const { proxy, closed, open } = await start()
    const client = open('GET')
    await client.until(/data: 1\n\n/)
    client.socket.destroy()
    await vi.waitFor(() => expect(closed).toEqual(['GET']))
    await vi.waitFor(() => expect(proxy.metrics.value(gauge)).toBe(0))
    expect(proxy.metrics.value('extauth_requests_total', 'r', 'unauthenticated', '200', 'client_gone')).toBe(1)
  })

  it('the client sees no clean end when the backend breaks off', async () => {
    const { streams, open } = await start()
    const client = open('GET')
    await client.until(/data: 1\n\n/)
    streams[0]?.destroy()
    await client.ended
    expect(client.text()).not.toMatch(/\r\n0\r\n\r\n$/)
  })

  it('a client that leaves before there is an answer is not waited for', async () => {
    const asked = Promise.withResolvers<void>()
    const left = Promise.withResolvers<void>()
    const origin = await sockets.http((_, response) => {
      response.on('close', () => left.resolve())
      asked.resolve()
    })
    const proxy = await startProxy(sockets, runtimeOf([createRoute(sockets, origin)]))
    const client = rawConnect(proxy.url, 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
    await asked.promise
    client.socket.destroy()
    await left.promise
    await vi.waitFor(() => expect(proxy.log.lines.join()).toContain('"reason":"client_gone"'))
    expect(proxy.metrics.value('extauth_requests_total', 'r', 'unauthenticated', '499', 'client_gone')).toBe(1)
  })

  it('nothing is sent for a client that left while its credential was obtained', async () => {
    let served = 0
    const origin = await sockets.http((_, response) => {
      served++
      response.end()
    })
    const obtaining = Promise.withResolvers<void>()
    const obtained = Promise.withResolvers<undefined>()
    const route = createRoute(sockets, origin, {
      credential: () => {
        obtaining.resolve()
        return obtained.promise.then(() => ({ kind: 'none' }) as const)
      },
    })
    const proxy = await startProxy(sockets, runtimeOf([route]))
    const client = rawConnect(proxy.url, 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
    await obtaining.promise
    client.socket.resetAndDestroy()
    await new Promise((resolve) => setTimeout(resolve, 50))
    obtained.resolve(undefined)
    await vi.waitFor(() => expect(proxy.log.lines.join()).toContain('"reason":"client_gone"'))
    expect(served).toBe(0)
  })
})
