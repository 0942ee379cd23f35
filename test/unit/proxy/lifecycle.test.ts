import type { ServerResponse } from 'node:http'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { Agent } from 'undici'
import { documentHandler, type Runtime } from '../../../src/proxy/index.ts'
import { rawConnect } from '../../support/raw.ts'
import { createSockets } from '../../support/sockets.ts'
import { createRoute, runtimeOf, startProxy } from '../../support/proxy/harness.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

/** A runtime whose backend answers `name`, slowly for `/slow`, and as an endless stream for `/events`. */
async function runtime(name: string): Promise<Runtime & { closed: boolean; readonly held: ServerResponse[] }> {
  const held: ServerResponse[] = []
  const origin = await sockets.http((request, response) => {
    if (request.url === '/slow') held.push(response)
    else if (request.url === '/events') {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write(`data: ${name}\n\n`)
    } else response.end(name)
  })
  const inner = runtimeOf([createRoute(sockets, origin)])
  const made = {
    ...inner,
    held,
    closed: false,
    close: async () => {
      made.closed = true
      await inner.close()
    },
  }
  return made
}

const raw = (url: string, path: string) => rawConnect(url, `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`)

describe('swap', () => {
  it('new requests use the new runtime, running ones finish on the old, which is then closed', async () => {
    const [old, next] = [await runtime('old'), await runtime('new')]
    const proxy = await startProxy(sockets, old)
    const slow = fetch(`${proxy.url}/slow`)
    await vi.waitFor(() => expect(old.held).toHaveLength(1))
    proxy.swap(next)
    expect(await (await fetch(proxy.url)).text()).toBe('new')
    expect(old.closed).toBe(false)
    old.held[0]?.end('slow old')
    expect(await (await slow).text()).toBe('slow old')
    await vi.waitFor(() => expect(old.closed).toBe(true))
    expect(next.closed).toBe(false)
  })

  it('an unused runtime is closed at once', async () => {
    const [old, next] = [await runtime('old'), await runtime('new')]
    const proxy = await startProxy(sockets, old)
    proxy.swap(next)
    expect(old.closed).toBe(true)
  })

  it('says which routes are gone when their last request is over', async () => {
    const [old, next] = [await runtime('old'), await runtime('new')]
    const named = (one: Runtime, ...names: string[]): Runtime => ({
      ...one,
      routes: names.flatMap((name) => one.routes.map((route) => ({ ...route, name, path: `/${name}` }))),
    })
    const gone: string[] = []
    const onRouteGone = ({ name }: { name: string }): void => void gone.push(name)
    const proxy = await startProxy(sockets, named(old, 'a', 'b'), {}, { onRouteGone })
    const slow = fetch(`${proxy.url}/a/slow`)
    await vi.waitFor(() => expect(old.held).toHaveLength(1))
    proxy.swap(named(next, 'b'))
    expect(await (await fetch(`${proxy.url}/b`)).text()).toBe('new')
    expect(gone).toEqual([])
    old.held[0]?.end()
    await (await slow).text()
    await vi.waitFor(() => expect(gone).toEqual(['a']))
  })

  it('a runtime that cannot be used leaves the old one in place', async () => {
    const old = await runtime('old')
    const proxy = await startProxy(sockets, old)
    const twice = documentHandler('/.well-known/x', {})
    expect(() => proxy.swap({ ...old, localHandlers: [twice, twice] })).toThrow('two endpoints at /.well-known/x')
    expect(await (await fetch(proxy.url)).text()).toBe('old')
    expect(old.closed).toBe(false)
  })

  it('no request fails while runtimes are swapped under load', async () => {
    const runtimes = await Promise.all(Array.from({ length: 10 }, (_, index) => runtime(`${index}`)))
    const [first] = runtimes
    if (first === undefined) throw new Error('no runtime')
    const proxy = await startProxy(sockets, first)
    const answers: string[] = []
    const load = new AbortController()
    const worker = async (): Promise<void> => {
      while (!load.signal.aborted) answers.push(await (await fetch(proxy.url, { method: 'POST', body: '{}' })).text())
    }
    const workers = Array.from({ length: 8 }, worker)
    for (const [index, next] of runtimes.slice(1).entries()) {
      await vi.waitFor(() => expect(answers).toContain(`${index}`), 10_000)
      proxy.swap(next)
    }
    await vi.waitFor(() => expect(answers).toContain('9'), 10_000)
    load.abort()
    await Promise.all(workers)
    expect(new Set(answers)).toEqual(new Set(runtimes.map((_, index) => `${index}`)))
    await vi.waitFor(() => expect(runtimes.map(({ closed }) => closed)).toEqual([...Array(9).fill(true), false]))
  })
})

describe('drain', () => {
  it('lets requests finish, refuses new ones on open connections, and closes everything', async () => {
    const only = await runtime('only')
    const proxy = await startProxy(sockets, only)
    const dispatcher = new Agent({ connections: 1 })
    sockets.closing(dispatcher)
    const idle = raw(proxy.url, '/')
    await idle.until(/only$/)
    const kept = raw(proxy.url, '/slow')
    await vi.waitFor(() => expect(only.held).toHaveLength(1))
    const second = raw(proxy.url, '/slow')
    await vi.waitFor(() => expect(only.held).toHaveLength(2))
    const drained = proxy.drain(10_000)
    expect(proxy.drain(0)).toBe(drained)
    expect(await idle.ended).toBe('end')
    only.held[0]?.end('done')
    expect(await kept.until(/done/)).toMatch(/^HTTP\/1\.1 200 .*connection: close/is)
    expect(only.closed).toBe(false)
    only.held[1]?.end('done')
    await second.until(/done/)
    await drained
    expect(only.closed).toBe(true)
    await expect(fetch(proxy.url)).rejects.toThrow('fetch failed')
  })

  it('answers 503 to a request that had begun to come, and ends its connection', async () => {
    const only = await runtime('only')
    const proxy = await startProxy(sockets, only)
    const busy = raw(proxy.url, '/slow')
    const begun = rawConnect(proxy.url, 'GET / HTTP/1.1\r\n')
    await vi.waitFor(() => expect(only.held).toHaveLength(1))
    const drained = proxy.drain(10_000)
    begun.socket.write('Host: localhost\r\n\r\n')
    expect(await begun.until(/\}\}\}$/)).toMatch(/^HTTP\/1\.1 503 .*connection: close.*"reason":"draining"/is)
    expect(await begun.ended).toBe('end')
    only.held[0]?.end('done')
    await busy.until(/done/)
    await drained
  })

  it('does not wait for connections that never asked for anything', async () => {
    const only = await runtime('only')
    const proxy = await startProxy(sockets, only)
    const silent = rawConnect(proxy.url, '')
    await new Promise((resolve) => silent.socket.once('connect', resolve))
    await new Promise((resolve) => setTimeout(resolve, 20))
    await proxy.drain(60_000)
    await silent.ended
    expect(only.closed).toBe(true)
  })

  it('ends streams that a GET opened at once and cleanly, also those that only open now', async () => {
    const only = await runtime('only')
    const proxy = await startProxy(sockets, only)
    const stream = raw(proxy.url, '/events')
    await stream.until(/data: only/)
    const late = raw(proxy.url, '/slow')
    await vi.waitFor(() => expect(only.held).toHaveLength(1))
    const drained = proxy.drain(60_000)
    await stream.until(/\r\n0\r\n\r\n$/)
    only.held[0]?.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: late\n\n')
    await late.until(/\r\n0\r\n\r\n$/)
    await drained
    expect(only.closed).toBe(true)
  })

  it('gives answers to a POST the whole grace period, streams too, and cuts them so that it shows', async () => {
    const only = await runtime('only')
    const proxy = await startProxy(sockets, only)
    const post = (path: string, version: string) =>
      rawConnect(proxy.url, `POST ${path} HTTP/${version}\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n`)
    const [ending, endless, old] = [post('/slow', '1.1'), post('/events', '1.1'), post('/events', '1.0')]
    await endless.until(/data: only/)
    await old.until(/data: only/)
    await vi.waitFor(() => expect(only.held).toHaveLength(1))
    only.held[0]?.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: first\n\n')
    await ending.until(/first/)
    const drained = proxy.drain(700)
    await new Promise((resolve) => setTimeout(resolve, 100))
    only.held[0]?.end('data: last\n\n')
    expect(await ending.until(/last.*0\r\n\r\n$/s)).toContain('first')
    expect(endless.socket.readableEnded).toBe(false)
    await drained
    await Promise.all([endless.ended, old.ended])
    expect(endless.text()).not.toMatch(/\r\n0\r\n\r\n$/)
    // A close-delimited response: only a reset shows that it is incomplete.
    expect(await old.ended).toBe('reset')
  })

  it('lets a client that reads slowly have its whole answer', async () => {
    const only = await runtime('only')
    const proxy = await startProxy(sockets, only)
    const slow = raw(proxy.url, '/slow')
    await vi.waitFor(() => expect(only.held).toHaveLength(1))
    slow.socket.pause()
    const drained = proxy.drain(10_000)
    only.held[0]?.end(Buffer.alloc(12 * 1024 * 1024, 'x'))
    await new Promise((resolve) => setTimeout(resolve, 300))
    slow.socket.resume()
    await drained
    await slow.ended
    expect(slow.text().length).toBeGreaterThan(12 * 1024 * 1024)
  })

  it('cuts what does not end within the grace period', async () => {
    const only = await runtime('only')
    const proxy = await startProxy(sockets, only)
    const slow = raw(proxy.url, '/slow')
    await vi.waitFor(() => expect(only.held).toHaveLength(1))
    await proxy.drain(50)
    expect(slow.text()).toBe('')
    await slow.ended
    expect(only.closed).toBe(true)
  })
})
