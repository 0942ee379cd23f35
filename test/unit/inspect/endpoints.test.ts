import { createServer, type IncomingMessage, request as httpRequest } from 'node:http'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { monotonicNow, Secret } from '../../../src/core/index.ts'
import { createInspector, type OwnRequest } from '../../../src/inspect/index.ts'
import type { Ops } from '../../../src/ops/index.ts'
import { send, SILENT, start } from '../../support/ops/start.ts'
import { createSockets } from '../../support/sockets.ts'

const sockets = createSockets()
let ops: Ops
let asked: OwnRequest[]
let own: string

beforeEach(async () => {
  asked = []
  own = await sockets.http((request, response) => {
    response.writeHead(request.method === 'DELETE' ? 403 : 200, {
      'content-type': 'text/event-stream',
      'mcp-session-id': 'session-1',
      'set-cookie': 'a=b',
      'x-request-id': 'request-1',
    })
    response.end('data: {}\n\n')
  })
  const inspector = createInspector({
    mode: 'bodies',
    maxBytes: 1e6,
    showClaims: false,
    clock: Date,
    log: SILENT,
    monotonicMs: monotonicNow,
    decisionOf: () => undefined,
    rulesOf: () => undefined,
    signingOf: () => undefined,
  })
  const pages = inspector.pages({
    version: '1.2.3',
    config: () => ({ routes: [{ target: { query: 'api_key=not-for-the-page&a=b' } }] }),
    routes: () => [],
    readiness: () => ({ ok: true }),
    listCache: () => ({ status: 200, json: { entries: 0 } }),
    purgeCache: ({ query }) => ({ status: 200, json: { purged: query.get('subject') } }),
    try: {
      offer: () => ({ proxyUrl: own, users: ['alice'] }),
      pathOf: (route) => (route === 'r' ? '/r' : undefined),
      send: (request) => {
        asked.push(request)
        const { method, path, headers, body } = request
        return new Promise<IncomingMessage>((resolve, reject) => {
          httpRequest(own + path, { method, headers }, resolve)
            .on('error', reject)
            .end(body)
        })
      },
      tokenOf: (user, route) => Promise.resolve(new Secret(`token-of-${user}-for-${route}`)),
    },
  })
  ops = await start({ guarded: { endpoints: {}, pages } })
  sockets.closing({ close: () => inspector.close() })
})
afterEach(async () => {
  await sockets.closeAll()
  await ops.close()
})

const call = (method: string, path: string, body?: unknown) =>
  send(ops.url, `/inspect${path}`, {
    method,
    headers: { host: new URL(ops.url).host, 'x-extauth-inspect': '1', 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })

describe('the endpoints of the page', () => {
  it.each([
    ['GET', '', 200],
    ['HEAD', '/', 200],
    ['POST', '', 405],
    ['GET', '/page/app.js', 200],
    ['GET', '/page/lib/preact.js', 200],
    ['GET', '/page/lib/nothing.js', 404],
    ['GET', '/page/..%2finspector.ts', 404],
    ['GET', '/page/../inspector.ts', 404],
    ['GET', '/page/toString', 404],
    ['POST', '/page/app.js', 405],
    ['GET', '/api/state', 200],
    ['GET', '/api/overview', 200],
    ['GET', '/api/requests', 200],
    ['POST', '/api/requests', 405],
    ['DELETE', '/api/requests', 204],
    ['GET', '/api/requests/unknown', 404],
    ['DELETE', '/api/requests/unknown', 405],
    ['GET', '/api/requests/unknown/events', 404],
    ['HEAD', '/api/events', 405],
    ['POST', '/api/events', 405],
    ['GET', '/api/try', 405],
    ['GET', '/api/nothing', 404],
    ['GET', '/login', 405],
  ])('%s %s is %i', async (method, path, status) => {
    expect((await call(method, path)).status).toBe(status)
  })

  it('hand filters on to the cache, and show no key in the query of a target', async () => {
    expect((await call('DELETE', '/api/cache?subject=alice')).text).toBe('{"purged":"alice"}')
    const { text } = await call('GET', '/api/config')
    expect(text).toContain('api_key=[masked]&a=b')
  })

  it('let only so many pages follow at once', async () => {
    const controller = new AbortController()
    // Referenced: an unreferenced response may be collected with its connection.
    const answers: Response[] = []
    for (let index = 0; index < 33; index++)
      answers.push(await fetch(`${ops.url}/inspect/api/events`, { signal: controller.signal }))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(32)
    expect(answers.at(-1)?.status).toBe(503)
    controller.abort()
  })
})

describe('a try', () => {
  const envelope = (more: object = {}) => ({ route: 'r', method: 'POST', headers: {}, body: '{}', ...more })

  it('goes to the path of its route with the token, and comes back as it streams', async () => {
    const headers = {
      accept: 'a/b',
      'mcp-name': 'x',
      cookie: 'c=d',
      authorization: 'Bearer other',
      'x-forwarded-for': '1',
    }
    const { status, headers: back, text } = await call('POST', '/api/try', envelope({ headers, token: 'the.token~1' }))
    expect([status, text]).toEqual([200, 'data: {}\n\n'])
    expect(back).toMatchObject({
      'x-extauth-try-status': '200',
      'mcp-session-id': 'session-1',
      'x-request-id': 'request-1',
    })
    expect(back['set-cookie']).toBeUndefined()
    expect(asked[0]).toMatchObject({ method: 'POST', path: '/r', body: Buffer.from('{}') })
    expect(asked[0]?.headers).toEqual({
      accept: 'a/b',
      'mcp-name': 'x',
      authorization: 'Bearer the.token~1',
      'user-agent': 'extauth-inspector',
    })
  })

  it('is sent with the token of a user if there are users, and returns the status of a rejection', async () => {
    const { headers } = await call('POST', '/api/try', envelope({ method: 'DELETE', body: undefined, user: 'alice' }))
    expect(headers['x-extauth-try-status']).toBe('403')
    expect(asked[0]?.headers['authorization']).toBe('Bearer token-of-alice-for-r')
    expect(asked[0]?.body).toBeUndefined()
  })

  it.each([
    ['an unknown route', envelope({ route: 'x' })],
    ['another method', envelope({ method: 'PUT' })],
    ['a token that is none', envelope({ token: 'two words' })],
    ['a header in a token', envelope({ token: 'a\r\nx: y' })],
    ['an unknown user', envelope({ user: 'eve' })],
    ['no JSON', '{'],
    ['nothing', 'null'],
  ])('is refused with %s', async (_, body) => {
    expect((await call('POST', '/api/try', body)).status).toBe(400)
    expect(asked).toEqual([])
  })

  it('is bounded', async () => {
    expect((await call('POST', '/api/try', envelope({ body: 'x'.repeat(2 * 1024 * 1024) }))).status).toBe(413)
  })

  it('says that the proxy does not answer', async () => {
    const silent = createServer()
    await sockets.listen(silent)
    own = 'http://127.0.0.1:1'
    const { status, text } = await call('POST', '/api/try', envelope())
    expect(status).toBe(502)
    expect(text).not.toContain('ECONNREFUSED')
  })
})
