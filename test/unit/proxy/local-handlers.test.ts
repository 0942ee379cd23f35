import { Readable } from 'node:stream'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { request } from 'undici'
import { type EndpointResponse, Failure, type LocalHandler, type LocalRequest } from '../../../src/core/index.ts'
import type { ListenOptions } from '../../../src/proxy/index.ts'
import { rawConnect } from '../../support/raw.ts'
import { createSockets } from '../../support/sockets.ts'
import { createRoute, startProxy } from '../../support/proxy/harness.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const text = (body: string): EndpointResponse => ({ status: 200, headers: {}, body })

const endpoint = (more: Partial<LocalHandler> = {}): LocalHandler => ({
  path: '/oauth/token',
  methods: ['POST'],
  bodyLimitBytes: 100,
  cors: 'any_origin',
  handle: ({ body }) => ({ status: 200, headers: { 'content-type': 'text/plain' }, body }),
  ...more,
})

async function start(handlers: readonly LocalHandler[], listen: Partial<ListenOptions> = {}) {
  let forwarded = 0
  const origin = await sockets.http((_, response) => {
    forwarded++
    response.end('backend')
  })
  const runtime = {
    routes: [createRoute(sockets, origin)],
    localHandlers: handlers,
    close: () => Promise.resolve(),
  }
  const proxy = await startProxy(sockets, runtime, listen)
  const send = async (path: string, options: { method?: string; body?: string; headers?: object } = {}) => {
    const { method = 'POST', body, headers = {} } = options
    const response = await request(proxy.url + path, {
      method: method as 'POST',
      body: body ?? null,
      headers: headers as Record<string, string>,
    })
    return { status: response.statusCode, headers: response.headers, body: await response.body.text() }
  }
  return { proxy, send, forwarded: () => forwarded }
}

describe('endpoints of our own', () => {
  it('come before the routes, and only at their exact address', async () => {
    const { send, forwarded } = await start([endpoint()])
    expect((await send('/oauth/token?a=b', { body: 'hello' })).body).toBe('hello')
    expect(forwarded()).toBe(0)
    for (const other of ['/oauth/token/', '/oauth/tokens', '/oauth', '/OAuth/token', '/oauth/%74oken'])
      expect((await send(other)).body).toBe('backend')
    expect(forwarded()).toBe(5)
  })

  it('receive the peer, the method and the path', async () => {
    const seen: LocalRequest[] = []
    const handle = (local: LocalRequest): EndpointResponse => {
      seen.push(local)
      return text('')
    }
    const { send } = await start([endpoint({ handle })])
    const { headers } = await send('/oauth/token?a=%20b', { body: '{}' })
    expect(seen[0]).toMatchObject({
      id: 'request-1',
      method: 'POST',
      path: '/oauth/token',
      query: 'a=%20b',
      client: { address: '127.0.0.1', isSecure: false },
    })
    expect(seen[0]?.body.toString()).toBe('{}')
    expect(headers).toMatchObject({ 'x-request-id': 'request-1', 'access-control-allow-origin': '*' })
  })

  it('with a query that belongs to the address come before those without', async () => {
    const named = (name: string, more: Partial<LocalHandler>): LocalHandler =>
      endpoint({ ...more, methods: ['GET'], handle: () => text(name) })
    const { send } = await start([named('any', {}), named('exact', { exactQuery: 'a=1' })])
    const get = async (path: string) => (await send(path, { method: 'GET' })).body
    expect(await get('/oauth/token?a=1')).toBe('exact')
    expect(await get('/oauth/token?a=2')).toBe('any')
    expect(await get('/oauth/token')).toBe('any')
  })

  it('answer HEAD as GET, and other methods with what is allowed', async () => {
    const { send } = await start([endpoint({ methods: ['GET', 'POST'] })])
    expect((await send('/oauth/token', { method: 'HEAD' })).status).toBe(200)
    const { status, headers, body } = await send('/oauth/token', { method: 'DELETE' })
    expect([status, headers['allow']]).toEqual([405, 'GET, HEAD, POST, OPTIONS'])
    expect(JSON.parse(body)).toEqual({ error: 'invalid_request', error_description: expect.any(String) })
  })

  it('that throw are answered in the shape of OAuth, with Retry-After where it is known', async () => {
    const failures = [
      new Failure('expired_token'),
      new Failure('overloaded', { retryAfterSeconds: 7 }),
      new Error('boom'),
    ]
    const handle = async (): Promise<EndpointResponse> => {
      throw failures.shift() ?? new Error('no more')
    }
    const { send, proxy } = await start([endpoint({ handle })])
    const first = await send('/oauth/token')
    expect([first.status, JSON.parse(first.body).error]).toEqual([401, 'invalid_token'])
    const second = await send('/oauth/token')
    expect([second.status, second.headers['retry-after']]).toEqual([503, '7'])
    const third = await send('/oauth/token')
    expect([third.status, JSON.parse(third.body).error]).toEqual([500, 'server_error'])
    expect(third.body).not.toContain('boom')
    await vi.waitFor(() => expect(proxy.log.lines).toHaveLength(3))
  })

  it('may stream their response, set a header several times, and replace one of the proxy', async () => {
    let broken: Readable | undefined
    const handle = ({ query }: LocalRequest): EndpointResponse => ({
      status: 201,
      headers: { 'set-cookie': ['a=b', 'c=d'], 'x-request-id': 'own' },
      body:
        query === 'broken'
          ? (broken = new Readable({ read() {} }))
          : Readable.from(['one', 'x'.repeat(300_000), 'two']),
    })
    const { send } = await start([endpoint({ handle, methods: ['GET', 'POST'] })])
    const { status, headers, body } = await send('/oauth/token')
    expect([status, headers['set-cookie'], headers['x-request-id']]).toEqual([201, ['a=b', 'c=d'], 'own'])
    expect(headers['content-length']).toBeUndefined()
    expect([body.length, body.slice(0, 4), body.slice(-4)]).toEqual([300_006, 'onex', 'xtwo'])
    expect((await send('/oauth/token', { method: 'HEAD' })).body).toBe('')
    const torn = send('/oauth/token?broken').catch(() => 'torn')
    await vi.waitFor(() => expect(broken).toBeDefined())
    broken?.push('begun')
    broken?.destroy(new Error('the source broke off'))
    expect(await torn).toBe('torn')
  })

  it('have their request logged with their address, without the query', async () => {
    const { send, proxy } = await start([endpoint()])
    await send('/oauth/token?code=secret', { body: 'x' })
    await vi.waitFor(() => expect(proxy.log.lines).toHaveLength(1))
    expect(JSON.parse(proxy.log.lines[0] ?? '')).toMatchObject({ endpoint: '/oauth/token', status: 200, route: '' })
    expect(proxy.log.lines[0]).not.toContain('secret')
  })

  it('whose client leaves are logged as such', async () => {
    let leave = (): void => undefined
    const handle = async (local: LocalRequest): Promise<EndpointResponse> => {
      leave()
      await new Promise((resolve) => local.request.once('close', resolve))
      return text('late')
    }
    const { proxy } = await start([endpoint({ handle })])
    const client = rawConnect(proxy.url, 'POST /oauth/token HTTP/1.1\r\nHost: localhost\r\n\r\n')
    leave = () => client.socket.destroy()
    await vi.waitFor(() => expect(proxy.log.lines[0]).toContain('"reason":"client_gone"'))
  })
})

describe('bodies of endpoints of our own', () => {
  it.each([
    ['announced', { body: 'x'.repeat(101) }, 413],
    ['at the limit', { body: 'x'.repeat(100) }, 200],
  ])('%s', async (_, options, status) => {
    expect((await (await start([endpoint()])).send('/oauth/token', options)).status).toBe(status)
  })

  it('chunked ones are bounded as well', async () => {
    const { proxy } = await start([endpoint()])
    const chunk = `65\r\n${'x'.repeat(101)}\r\n`
    const head = 'POST /oauth/token HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n'
    expect(await rawConnect(proxy.url, head + chunk).until(/\r\n\r\n/)).toMatch(/^HTTP\/1\.1 413 /)
  })

  it('mean nothing where no body is read, and are gone before the next request', async () => {
    const handle = ({ body }: LocalRequest): EndpointResponse => text(`got ${body.length}`)
    const { proxy } = await start([endpoint({ methods: ['GET'], bodyLimitBytes: 0, handle })])
    const one = (body: string) =>
      `GET /oauth/token HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${body.length}\r\n\r\n${body}`
    const client = rawConnect(proxy.url, one('POST / HTTP/1.1\r\n') + one(''))
    expect(await client.until(/got 0[^]*got/)).not.toContain('backend')
    const large = rawConnect(proxy.url, one('x'.repeat(70_000)))
    expect(await large.until(/\r\n\r\n/)).toMatch(/^HTTP\/1\.1 413 /)
  })
})

describe('pages of other origins', () => {
  const EVERYWHERE = { address: '0.0.0.0:0' }
  const foreign = { origin: 'https://evil.example' }

  it('may call endpoints that are open to all origins', async () => {
    const { send } = await start([endpoint()], EVERYWHERE)
    const { status, headers } = await send('/oauth/token', { headers: foreign })
    expect([status, headers['access-control-allow-origin']]).toEqual([200, '*'])
    expect(headers['access-control-expose-headers']).toContain('Retry-After')
    const ask = { ...foreign, 'access-control-request-method': 'POST' }
    const preflight = await send('/oauth/token', { method: 'OPTIONS', headers: ask })
    expect(preflight.status).toBe(204)
    expect(preflight.headers['access-control-allow-methods']).toBe('POST, OPTIONS')
  })

  it('may not call the rest, unless they are listed or the own ones of the endpoint', async () => {
    const page = endpoint({ cors: 'allowed_origins', ownOrigins: ['https://login.example'] })
    const { send } = await start([page], { ...EVERYWHERE, allowedOrigins: ['https://app.example'] })
    const from = async (origin: string) => (await send('/oauth/token', { headers: { origin } })).status
    expect(await from('https://evil.example')).toBe(403)
    expect(await from('https://app.example')).toBe(200)
    expect(await from('https://login.example')).toBe(200)
    const { headers } = await send('/oauth/token', { headers: { origin: 'https://login.example' } })
    expect(headers['access-control-allow-origin']).toBeUndefined()
  })
})
