import { connect } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import type { Ops } from '../../../src/ops/index.ts'
import { send, start } from '../../support/ops/start.ts'

let ops: Ops | undefined
afterEach(async () => {
  await ops?.close()
  ops = undefined
})

/** Sends raw bytes and gives all that comes back until the server ends the connection. */
const raw = (url: string, bytes: string): Promise<string> =>
  new Promise((resolve, reject) => {
    let text = ''
    const socket = connect(Number(new URL(url).port), '127.0.0.1', () => socket.write(bytes))
    socket.on('data', (chunk) => (text += chunk.toString()))
    socket.on('end', () => resolve(text))
    socket.on('error', reject)
  })

describe('the admin listener, open to all', () => {
  it('answers health, version and metrics, never to be stored or sniffed', async () => {
    ops = await start()
    const health = await send(ops.url, '/health')
    expect(health).toMatchObject({ status: 200, text: '{"status":"ok"}' })
    expect(health.headers).toMatchObject({
      'content-type': 'application/json; charset=utf-8',
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-store',
    })
    expect(await send(ops.url, '/version?x=1')).toMatchObject({ status: 200, text: '{"version":"1.2.3"}' })
    const metrics = await send(ops.url, '/metrics')
    expect(metrics.text).toBe('# HELP x y\nx 1\n')
    expect(metrics.headers['content-type']).toContain('text/plain; version=0.0.4')
  })

  it.each([
    [{ ok: true }, 200, { status: 'ready' }],
    [
      { ok: true, degraded: true, detail: { why: 'old data' } },
      200,
      { status: 'degraded', detail: { why: 'old data' } },
    ],
    [{ ok: false, detail: 'draining' }, 503, { status: 'unavailable', detail: 'draining' }],
  ])('returns readiness %j as status %i', async (readiness, status, body) => {
    ops = await start({ readiness: () => readiness })
    const got = await send(ops.url, '/readiness')
    expect([got.status, JSON.parse(got.text)]).toEqual([status, body])
  })

  it('answers HEAD like GET without the body, and other methods with 405 and Allow', async () => {
    ops = await start()
    const head = await send(ops.url, '/version', { method: 'HEAD' })
    expect(head).toMatchObject({ status: 200, text: '' })
    expect(head.headers['content-length']).toBe('19')
    for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS']) {
      const got = await send(ops.url, '/health', { method })
      expect([got.status, got.headers['allow']]).toEqual([405, 'GET, HEAD'])
    }
  })

  it.each(['/', '/healthz', '/health/', '//health', '/Health', '/config', '/constructor'])(
    'knows no %s',
    async (path) => {
      ops = await start()
      const got = await send(ops.url, path)
      expect(got.status).toBe(404)
      expect(JSON.parse(got.text)).toEqual({ error: 'not_found', error_description: expect.any(String) as string })
    },
  )

  it.each(['/health', '/readiness', '/version', '/metrics'])(
    'shows %s on a loopback bind only under a name of this machine: a page that rebound its name reads nothing',
    async (path) => {
      ops = await start()
      const ask = (host: string) => send(ops?.url ?? '', path, { headers: { host } })
      for (const host of ['evil.example', 'localhost.evil.example:8081']) {
        const { status, text } = await ask(host)
        expect([status, JSON.parse(text)]).toMatchObject([403, { error: 'access_denied' }])
      }
      for (const host of ['localhost', '127.0.0.1:1', '[::1]:8081']) expect((await ask(host)).status).toBe(200)
      await ops.close()
      ops = await start({ address: '0.0.0.0:0' })
      const { port } = new URL(ops.url)
      const elsewhere = await send(`http://127.0.0.1:${port}`, path, { headers: { host: 'pod.example' } })
      expect(elsewhere.status).toBe(200)
    },
  )

  it('turns a failing metrics renderer into a 500 without its text', async () => {
    ops = await start({ metrics: () => Promise.reject(new Error('password=hunter2')) })
    const got = await send(ops.url, '/metrics')
    expect(got.status).toBe(500)
    expect(got.text).not.toContain('hunter2')
  })

  it.each([
    ['no HTTP at all', 'hello\r\n\r\n', '400 Bad Request'],
    ['headers beyond 16 KiB', `GET /health HTTP/1.1\r\nhost: x\r\na: ${'b'.repeat(17_000)}\r\n\r\n`, '431 '],
    [
      'two framings',
      'GET /health HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n',
      '400 ',
    ],
  ])('ends a connection that sends %s', async (_, bytes, status) => {
    ops = await start()
    expect(await raw(ops.url, bytes)).toContain(`HTTP/1.1 ${status}`)
  })

  it.each([
    ['two Host', 'host: localhost\r\nHost: localhost\r\n', '/health'],
    ['a Host that is none', 'host: a b\r\n', '/health'],
    ['no Host', '', '/health'],
    ['another host in its target', 'host: localhost\r\n', 'http://elsewhere/health'],
  ])('refuses a request with %s', async (_, headers, target) => {
    ops = await start()
    const text = await raw(ops.url, `GET ${target} HTTP/1.1\r\n${headers}connection: close\r\n\r\n`)
    expect(text).toMatch(/^HTTP\/1\.1 400 /)
  })

  it.each([
    [
      'its own host in the target',
      'GET http://localhost/health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n',
    ],
    ['no Host, as HTTP/1.0 probes have none', 'GET /health HTTP/1.0\r\n\r\n'],
  ])('serves a request with %s', async (_, bytes) => {
    ops = await start()
    expect(await raw(ops.url, bytes)).toMatch(/^HTTP\/1\.1 200 /)
  })

  it('does not read the body of a request that has none to send', async () => {
    ops = await start()
    const bytes =
      'POST /health HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\nGET /health HTTP/1.1\r\nhost: x\r\n\r\n'
    const text = await raw(ops.url, bytes)
    expect(text.match(/HTTP\/1\.1 /g)).toHaveLength(1)
    expect(text).toContain('Connection: close'.toLowerCase())
  })

  it('refuses an address that is none and one that is taken', async () => {
    ops = await start()
    await expect(start({ address: 'nowhere' })).rejects.toMatchObject({ code: 'config_error' })
    await expect(start({ address: `127.0.0.1:${new URL(ops.url).port}` })).rejects.toMatchObject({
      code: 'config_error',
      cause: { code: 'EADDRINUSE' },
    })
  })

  it('stops listening when closed', async () => {
    const stopped = await start()
    await stopped.close()
    await expect(send(stopped.url, '/health')).rejects.toMatchObject({ code: 'ECONNREFUSED' })
  })
})
