import { afterEach, describe, expect, it } from 'vitest'
import { request } from 'undici'
import { Failure, type Route } from '../../../src/core/index.ts'
import type { ListenOptions } from '../../../src/proxy/index.ts'
import { createSockets } from '../../support/sockets.ts'
import { createRoute, runtimeOf, startProxy, type RouteOptions } from '../../support/proxy/harness.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

async function start(listen: Partial<ListenOptions> = {}, options: RouteOptions = {}, documents = {}) {
  let served = 0
  const origin = await sockets.http((_, response) => {
    served++
    response.writeHead(200, { 'access-control-allow-origin': '*', 'content-type': 'text/plain' }).end('ok')
  })
  const routes: Route[] = [createRoute(sockets, origin, options)]
  const proxy = await startProxy(sockets, runtimeOf(routes, documents), listen)
  const port = new URL(proxy.url).port
  const send = async (headers: Record<string, string>, method = 'GET', path = '/') => {
    const response = await request(`http://127.0.0.1:${port}${path}`, { method: method as 'GET', headers })
    return { status: response.statusCode, headers: response.headers, body: await response.body.text() }
  }
  return { send, port, served: () => served }
}

const EVERYWHERE = { address: '0.0.0.0:0' }

describe('Origin', () => {
  it.each<[string, Partial<ListenOptions>, string, boolean]>([
    ['a page of this machine on a loopback bind', {}, 'http://localhost:3000', true],
    ['by address', {}, 'http://127.0.0.1:6274', true],
    ['by IPv6 address', {}, 'https://[::1]:1', true],
    ['a foreign page on a loopback bind', {}, 'https://evil.example', false],
    ['a name that only looks like this machine', {}, 'http://localhost.evil.example', false],
    ['an opaque origin', {}, 'null', false],
    ['another scheme', {}, 'chrome-extension://localhost', false],
    ['a listed page on a loopback bind', { allowedOrigins: ['https://app.example'] }, 'https://app.example', true],
    ['a page of this machine elsewhere', EVERYWHERE, 'http://localhost:3000', false],
    [
      'a listed page elsewhere',
      { ...EVERYWHERE, allowedOrigins: ['https://app.example'] },
      'https://app.example',
      true,
    ],
    [
      'the same in another case',
      { ...EVERYWHERE, allowedOrigins: ['https://app.example'] },
      'https://APP.example',
      true,
    ],
    [
      'another port than the listed',
      { ...EVERYWHERE, allowedOrigins: ['https://app.example'] },
      'https://app.example:8443',
      false,
    ],
    ['any page where all are listed', { ...EVERYWHERE, allowedOrigins: ['*'] }, 'https://any.example', true],
  ])('%s: %j %s → %s', async (_, listen, origin, allowed) => {
    const { send, served } = await start(listen)
    const { status, headers, body } = await send({ origin })
    expect(status).toBe(allowed ? 200 : 403)
    expect(headers['access-control-allow-origin']).toBe(allowed ? origin : undefined)
    expect(served()).toBe(allowed ? 1 : 0)
    if (!allowed) expect(body).toContain('"reason":"bad_origin"')
  })

  it.each<[string, Partial<ListenOptions>, Record<string, string>, boolean]>([
    ['an image on a foreign page', {}, { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors' }, false],
    ['a link on a foreign page', {}, { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' }, false],
    ['an image on a page of another port', {}, { 'sec-fetch-site': 'same-site' }, false],
    ['an image elsewhere', EVERYWHERE, { 'sec-fetch-site': 'cross-site' }, false],
    ['one that says both', {}, { 'sec-fetch-site': 'none, cross-site' }, false],
    ['an allowed page', {}, { 'sec-fetch-site': 'cross-site', origin: 'http://localhost:3000' }, true],
    ['the address line', {}, { 'sec-fetch-site': 'none' }, true],
    ['a page of the proxy', {}, { 'sec-fetch-site': 'same-origin' }, true],
  ])('%s (%j %j) without an allowed Origin → %s', async (_, listen, headers, allowed) => {
    const { send, served } = await start(listen)
    const { status, body } = await send(headers)
    expect([status, served()]).toEqual(allowed ? [200, 1] : [403, 0])
    if (!allowed) expect(body).toContain('"reason":"bad_origin"')
  })

  it('a browser that comes from another site may read documents and log in', async () => {
    const { send } = await start({}, {}, { '/.well-known/thing': { a: 1 } })
    expect((await send({ 'sec-fetch-site': 'cross-site' }, 'GET', '/.well-known/thing')).status).toBe(200)
  })

  it('lets tools without Origin through anywhere', async () => {
    expect((await (await start(EVERYWHERE)).send({})).status).toBe(200)
  })

  it('says what browsers may read, also of a failure', async () => {
    const { send } = await start(
      {},
      {
        isProtected: true,
        resourceUrl: 'https://mcp.example.com/',
        caller: () => {
          throw new Failure('missing_token')
        },
      },
    )
    const { status, headers } = await send({ origin: 'http://localhost:1' })
    expect(status).toBe(401)
    expect(headers).toMatchObject({
      'access-control-allow-origin': 'http://localhost:1',
      'access-control-expose-headers': 'Mcp-Session-Id, WWW-Authenticate, X-Request-Id, Retry-After',
      vary: 'Origin',
      'www-authenticate':
        'Bearer realm="mcp", resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource"',
      'x-request-id': 'request-1',
      'cache-control': 'no-store',
    })
  })
})

describe('preflights', () => {
  const ASK = {
    'access-control-request-method': 'POST',
    'access-control-request-headers': 'authorization,content-type,mcp-param-region',
  }

  it('are answered by us for origins that may call, without asking who it is', async () => {
    const { send, served } = await start(
      {},
      {
        caller: () => {
          throw new Failure('missing_token')
        },
      },
    )
    const { status, headers, body } = await send({ origin: 'http://localhost:1', ...ASK }, 'OPTIONS')
    expect([status, body, served()]).toEqual([204, '', 0])
    expect(headers).toMatchObject({
      'access-control-allow-origin': 'http://localhost:1',
      'access-control-allow-headers': ASK['access-control-request-headers'],
      'access-control-allow-methods': 'GET, POST, PUT, PATCH, DELETE, HEAD, OPTIONS',
    })
    expect(headers['access-control-allow-credentials']).toBeUndefined()
  })

  it('are refused for other origins', async () => {
    const { send, served } = await start()
    const { status, headers } = await send({ origin: 'https://evil.example', ...ASK }, 'OPTIONS')
    expect([status, headers['access-control-allow-origin'], served()]).toEqual([403, undefined, 0])
  })

  it('are distinguished from OPTIONS requests for the backend', async () => {
    const { send, served } = await start()
    expect((await send({}, 'OPTIONS')).status).toBe(200)
    expect(served()).toBe(1)
  })
})

describe('Host', () => {
  it.each<[string, Partial<ListenOptions>, string, number]>([
    ['a loopback bind serves names of this machine', {}, 'localhost:9', 200],
    ['and its addresses', {}, '[::1]', 200],
    ['and no other name', {}, 'evil.example', 403],
    ['unless it is listed', { allowedHosts: ['mcp.example'] }, 'mcp.example:80', 200],
    ['with its port', { allowedHosts: ['mcp.example:81'] }, 'mcp.example:81', 200],
    ['and only that port', { allowedHosts: ['mcp.example:81'] }, 'mcp.example:82', 403],
    ['a public bind serves any name', EVERYWHERE, 'whatever.example', 200],
    ['unless names are listed', { ...EVERYWHERE, allowedHosts: ['mcp.example'] }, 'whatever.example', 403],
  ])('%s: %j', async (_, listen, host, status) => {
    const { send, served } = await start(listen)
    expect((await send({ host })).status).toBe(status)
    expect(served()).toBe(status === 200 ? 1 : 0)
  })
})

describe('discovery documents', () => {
  const documents = {
    '/.well-known/oauth-protected-resource/github': { resource: 'https://mcp.example.com/github' },
    '/.well-known/oauth-protected-resource': { resource: 'https://mcp.example.com/' },
  }

  it('are served to all callers, from any origin', async () => {
    const { send, served } = await start(EVERYWHERE, {}, documents)
    const path = '/.well-known/oauth-protected-resource/github'
    const { status, headers, body } = await send({ origin: 'https://any.example' }, 'GET', path)
    expect([status, JSON.parse(body)]).toEqual([200, { resource: 'https://mcp.example.com/github' }])
    expect(headers).toMatchObject({ 'access-control-allow-origin': '*', 'content-type': 'application/json' })
    const preflight = await send(
      { origin: 'https://any.example', 'access-control-request-method': 'GET' },
      'OPTIONS',
      path,
    )
    expect([preflight.status, preflight.headers['access-control-allow-origin']]).toEqual([204, '*'])
    const head = await send({}, 'HEAD', path)
    expect([head.status, head.headers['content-length'], head.body]).toEqual([200, String(body.length), ''])
    expect(served()).toBe(0)
  })

  it('are ours or not found', async () => {
    const { send, served } = await start({}, {}, documents)
    expect((await send({}, 'GET', '/.well-known/oauth-authorization-server')).status).toBe(404)
    expect((await send({}, 'GET', '/.well-known')).status).toBe(404)
    const post = await send({}, 'POST', '/.well-known/oauth-protected-resource')
    expect([post.status, post.headers['allow']]).toEqual([405, 'GET, HEAD, OPTIONS'])
    expect(served()).toBe(0)
    expect((await send({}, 'GET', '/.well-knowns')).status).toBe(200)
  })
})
