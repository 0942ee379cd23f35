import { connect } from 'node:net'
import { rawConnect } from '../../support/raw.ts'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { RegistryServer } from '../../../src/registry/index.ts'
import { entry, get, NO_METRICS, recordingLog, SERVERS, start, stateOf } from '../../support/registry/setup.ts'

let server: RegistryServer
beforeAll(async () => {
  server = await start([entry('com.example/a', '1.0.0')])
})
afterAll(() => server.drain(0))

const raw = (bytes: string): Promise<string> =>
  new Promise((resolve, reject) => {
    let text = ''
    const socket = connect(Number(new URL(server.url).port), '127.0.0.1', () => socket.write(bytes))
    socket.on('data', (chunk) => (text += chunk.toString()))
    socket.on('end', () => resolve(text))
    socket.on('error', reject)
  })

describe('the registry over HTTP', () => {
  it('forbids sniffing and lets pages of any origin read, on good answers and failures', async () => {
    for (const path of [SERVERS, '/openapi.json', '/.well-known/oauth-protected-resource', '/nowhere', '/a/../b']) {
      const { headers } = await get(server, path)
      expect([path, headers['x-content-type-options'], headers['access-control-allow-origin']]).toEqual([
        path,
        'nosniff',
        '*',
      ])
    }
  })

  it('gives each routed request an id, which the log has too', async () => {
    const log = recordingLog()
    const own = await start([], { log, requestId: () => 'request-1' })
    const got = await get(own, SERVERS)
    await own.drain(0)
    expect(got.headers['x-request-id']).toBe('request-1')
    expect(log.lines.join('\n')).toMatch(
      /info request \{"requestId":"request-1","route":"\/registry\/:name\/v0.1\/servers","method":"GET","status":200/,
    )
  })

  it.each([
    SERVERS,
    `${SERVERS}/com.example%2Fa/versions/latest`,
    '/openapi.json',
    '/.well-known/oauth-protected-resource',
  ])('answers HEAD %s like GET, without the body', async (path) => {
    const [got, head] = [await get(server, path), await get(server, path, { method: 'HEAD' })]
    expect([head.status, head.text]).toEqual([200, ''])
    expect(head.headers['content-length']).toBe(String(Buffer.byteLength(got.text)))
    expect(head.headers['content-type']).toBe(got.headers['content-type'])
  })

  it.each(['POST', 'PUT', 'PATCH', 'DELETE', 'PROPFIND', 'TRACE'])('answers %s with 405 and Allow', async (method) => {
    for (const path of [SERVERS, '/openapi.json', '/nowhere']) {
      const got = await get(server, path, { method })
      expect([got.status, got.headers['allow']]).toEqual([405, 'GET, HEAD, OPTIONS'])
      expect(got.json).toEqual({ error: 'invalid_request', error_description: expect.any(String) as string })
    }
  })

  it('answers OPTIONS without CORS words when it is no preflight, and for the server as a whole', async () => {
    for (const path of [SERVERS, '*']) {
      const got = await get(server, path, { method: 'OPTIONS' })
      expect([got.status, got.headers['allow'], got.headers['access-control-allow-methods']]).toEqual([
        204,
        'GET, HEAD, OPTIONS',
        undefined,
      ])
    }
  })

  it.each(['/registry/unknown/v0.1/servers', '/registry/__proto__/v0.1/servers', `${SERVERS}/a%2Fb/versions/9`])(
    'answers 404 to %s, and says that a name leads nowhere',
    async (path) => {
      const got = await get(server, path)
      expect(got.status).toBe(404)
      expect(got.json).toEqual({
        error: 'not_found',
        error_description: 'No resource at this path. Registry, server or version not found.',
      })
    },
  )

  it.each(['/registry/default/v0.2/servers', '/.well-known/nothing', '/', '/health', '/metrics'])(
    'answers 404 to %s',
    async (path) => {
      const got = await get(server, path)
      expect(got.status).toBe(404)
      expect(got.json).toEqual({ error: 'not_found', error_description: 'No resource at this path.' })
    },
  )

  it.each([
    ['no HTTP', 'nonsense\r\n\r\n', 400],
    ['no Host', 'GET / HTTP/1.1\r\n\r\n', 400],
    ['two Host', 'GET / HTTP/1.1\r\nhost: x\r\nhost: x\r\nconnection: close\r\n\r\n', 400],
    ['a Host that is none', 'GET / HTTP/1.1\r\nhost: x/y\r\nconnection: close\r\n\r\n', 400],
    ['two framings', 'GET / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n', 400],
    ['headers beyond the limit', `GET / HTTP/1.1\r\nhost: x\r\na: ${'b'.repeat(26_000)}\r\n\r\n`, 431],
  ])('refuses %s with the shape of every failure and closes', async (_, bytes, status) => {
    const text = await raw(bytes)
    expect(text).toContain(`HTTP/1.1 ${status} `)
    if (status === 431 || !text.includes('content-length: 0')) expect(text.toLowerCase()).toContain('connection: close')
  })

  it('does not take the body of a refused request for another one', async () => {
    const text = await raw(
      `POST ${SERVERS} HTTP/1.1\r\nhost: x\r\ncontent-length: 500\r\n\r\nGET ${SERVERS} HTTP/1.1\r\nhost: x\r\n\r\n`,
    )
    expect(text.match(/HTTP\/1\.1 /g)).toHaveLength(1)
    expect(text).toContain(' 405 ')
  })

  it('holds one answer for a client that pipelines and does not read', async () => {
    const counted: string[] = []
    const record = (_name: string) => ({
      with: (...labels: string[]) => ({ add: () => void counted.push(labels.join(' ')) }),
    })
    const large = Array.from({ length: 100 }, (_, index) => entry(`com.example/${'x'.repeat(60)}${index}`, '1.0.0'))
    const own = await start(large, { metrics: { ...NO_METRICS, counter: record } })
    const clients = Array.from({ length: 10 }, () => {
      const client = rawConnect(own.url, `GET ${SERVERS}?limit=100 HTTP/1.1\r\nhost: x\r\n\r\n`.repeat(250))
      client.socket.pause()
      return client
    })
    // Ends only when half a second passes without an answer: what fits into the buffers of the system was answered.
    let before: number
    do {
      before = counted.length
      await new Promise((resolve) => setTimeout(resolve, 500))
    } while (counted.length === 0 || counted.length > before)
    expect(before).toBeLessThan(2500)
    for (const client of clients) client.socket.destroy()
    await own.drain(0)
  })

  it('shows nothing of an error inside', async () => {
    const broken = await start([], {
      registries: new Map([
        [
          'default',
          {
            state: () => {
              throw new Error('password=hunter2 at /etc/secret.ts:1')
            },
          },
        ],
      ]),
    })
    const got = await get(broken, SERVERS)
    await broken.drain(0)
    expect(got.status).toBe(500)
    expect(got.json).toEqual({ error: 'server_error', error_description: 'Internal error.' })
  })

  it('answers 503 with Retry-After for a registry that has no data yet', async () => {
    const empty = await start([], { registries: new Map([['default', stateOf(undefined, 'missing')]]) })
    const got = await get(empty, SERVERS)
    await empty.drain(0)
    expect([got.status, got.headers['retry-after']]).toEqual([503, '5'])
    expect(got.json).toMatchObject({ error: 'temporarily_unavailable' })
  })

  it('counts requests by route and outcome, never by what was asked for', async () => {
    const counted: string[] = []
    const metrics = {
      ...NO_METRICS,
      counter: (name: string) => ({
        with: (...labels: string[]) => ({ add: () => void counted.push(`${name} ${labels.join(' ')}`) }),
      }),
    }
    const own = await start([], { metrics })
    for (const path of [`${SERVERS}?search=me`, `${SERVERS}/a%2Fb/versions`, '/secret/path']) await get(own, path)
    await own.drain(0)
    expect(counted).toEqual([
      'extauth_registry_requests_total /registry/:name/v0.1/servers ok',
      'extauth_registry_requests_total /registry/:name/v0.1/servers/:serverName/versions not_found',
      'extauth_registry_requests_total none not_found',
    ])
  })
})
