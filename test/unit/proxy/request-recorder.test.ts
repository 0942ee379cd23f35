import { afterEach, describe, expect, it, vi } from 'vitest'
import { Failure, Secret } from '../../../src/core/index.ts'
import { createCaller } from '../../support/ports.ts'
import { createSockets } from '../../support/sockets.ts'
import { createRoute, headerCredential, runtimeOf, startProxy, type RouteOptions } from '../../support/proxy/harness.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

async function start(options: RouteOptions = {}) {
  const origin = await sockets.http((_, response) => void response.end('ok'))
  const route = createRoute(sockets, origin, { name: 'github', type: 'bearerToken', ...options })
  const proxy = await startProxy(sockets, runtimeOf([route]))
  const send = async (headers: Record<string, string> = {}) => {
    const response = await fetch(`${proxy.url}/some/path?with=query`, { headers })
    const body = await response.text()
    await vi.waitFor(() => expect(proxy.log.lines).toHaveLength(1))
    return { response, body, line: JSON.parse(proxy.log.lines[0] ?? '') as Record<string, unknown> }
  }
  return { proxy, send }
}

describe('what is written about a request', () => {
  it('is one line with ids, timings and a hash of the caller', async () => {
    const { send, proxy } = await start({ caller: () => createCaller({ subject: 'alice' }) })
    const { line, response } = await send()
    expect(response.headers.get('x-request-id')).toBe('request-1')
    expect(line).toEqual({
      level: 'info',
      message: 'request',
      requestId: 'request-1',
      route: 'github',
      type: 'bearerToken',
      method: 'GET',
      caller: expect.stringMatching(/^[0-9a-f]{16}$/) as string,
      status: 200,
      durationMs: expect.any(Number) as number,
      firstByteMs: expect.any(Number) as number,
      attempts: 1,
    })
    expect(proxy.metrics.value('extauth_requests_total', 'github', 'bearerToken', '200', '')).toBe(1)
    expect(proxy.metrics.value('extauth_request_duration_seconds', 'github', 'bearerToken')).toBe(1)
    expect(proxy.metrics.value('extauth_time_to_first_byte_seconds', 'github', 'bearerToken')).toBe(1)
  })

  it.each([
    ['no_role', 403, 'info'],
    ['secret_unavailable', 500, 'warn'],
    ['sts_throttled', 503, 'warn'],
    ['internal_error', 500, 'error'],
  ] as const)('logs the reason for %s, at a higher level if an operator must act', async (code, status, level) => {
    const cause = Object.assign(new Error('text with a secret'), { code: 'ECODE' })
    const { send, proxy } = await start({
      credential: () => {
        throw new Failure(code, { detail: 'our words', cause })
      },
    })
    const { line, response, body } = await send()
    expect(response.status).toBe(status)
    expect(line).toMatchObject({
      level,
      status,
      reason: code,
      detail: 'our words',
      cause: { name: 'Error', code: 'ECODE' },
    })
    expect(JSON.parse(body)).toMatchObject({
      jsonrpc: '2.0',
      error: { code: -32000, data: { reason: code, requestId: 'request-1' } },
    })
    expect(body).not.toContain('"id"')
    expect(response.headers.get('content-type')).toBe('application/json')
    expect(response.headers.get('retry-after')).toBe(status === 503 ? '5' : null)
    expect(proxy.metrics.value('extauth_requests_total', 'github', 'bearerToken', String(status), code)).toBe(1)
    expect(proxy.log.lines.join() + body).not.toContain('text with a secret')
  })

  it('takes Retry-After from the failure', async () => {
    const { send } = await start({
      credential: () => {
        throw new Failure('sts_unavailable', { retryAfterSeconds: 17 })
      },
    })
    expect((await send()).response.headers.get('retry-after')).toBe('17')
  })

  it('says where a bug is and nothing of what it said', async () => {
    const { send } = await start({
      credential: () => {
        throw new TypeError('quotes the secret')
      },
    })
    const { line, body } = await send()
    expect(line).toMatchObject({
      level: 'error',
      reason: 'internal_error',
      at: expect.stringContaining('.test.ts') as string,
    })
    expect(JSON.stringify(line) + body).not.toContain('quotes')
  })

  it('never holds a token, a secret, a subject, a path or a query', async () => {
    const secret = new Secret('static-secret-value')
    const { send, proxy } = await start({
      ownedHeaders: ['x-key'],
      caller: () => createCaller({ subject: 'alice@example.com', token: 'callers-token-abcdef' }),
      credential: () => headerCredential('x-key', secret.reveal()),
    })
    await send({ authorization: 'Bearer callers-token-abcdef', cookie: 'c=cookie-value' })
    const written = proxy.log.lines.join('\n') + proxy.metrics.text()
    for (const word of ['static-secret', 'callers-token', 'cookie-value', 'alice', 'some/path', 'query'])
      expect(written).not.toContain(word)
  })
})
