import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { meanwhile } from '../../support/meanwhile.ts'
import { authConfig, proxyConfig, run, type RunningTestProxy } from '../../support/e2e/run.ts'

/** Concurrent calls to an endpoint; one peer may use all free ones (decisions §2.10). */
const PLACES = 64

/** An introspection endpoint that answers on demand. */
const waiting: { token: string; response: ServerResponse }[] = []
const endpoint = createServer((request, response) => {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    const token = new URLSearchParams(Buffer.concat(chunks).toString()).get('token') ?? ''
    waiting.push({ token, response })
  })
})
const backend = createServer((_request, response) => response.end('fine'))
const urlOf = (server: typeof backend): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}`

let proxy: RunningTestProxy
beforeAll(async () => {
  endpoint.listen(0, '127.0.0.1')
  backend.listen(0, '127.0.0.1')
  await Promise.all([once(endpoint, 'listening'), once(backend, 'listening')])
})
afterAll(() => {
  endpoint.close()
  backend.close()
})
afterEach(() => proxy.close())

async function start(trustedProxies: readonly string[]): Promise<void> {
  const provider = { name: 'idp', issuerUrl: 'http://127.0.0.1:1', audience: 'a', introspectionUrl: urlOf(endpoint) }
  proxy = await run({
    'auth.json': authConfig('none', { type: 'unauthenticated' }),
    'proxy.json': proxyConfig({
      listen: { address: '127.0.0.1:0', trustedProxies },
      auth: { mode: 'oauth', oauth: { resourceUrl: 'http://127.0.0.1/', providers: [provider] } },
      routes: [{ name: 'a', path: '/a', target: urlOf(backend), externalAuthConfigRef: { name: 'none' } }],
    }),
  })
}

const call = (token: string, client: string): Promise<number> =>
  fetch(`${proxy.url}/a`, { headers: { authorization: `Bearer ${token}`, 'x-forwarded-for': client } }).then(
    ({ status }) => status,
  )

function answerAll(): void {
  for (const { response } of waiting.splice(0)) {
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ active: true, aud: 'a', sub: 's', exp: Date.now() / 1000 + 60 }))
  }
}

/** Answers calls as they come until every request has its own answer. */
const serve = (requests: readonly Promise<number>[]): Promise<number[]> => meanwhile(10, answerAll, requests)

describe('the share of a peer in introspections', () => {
  it('applies to the client that a trusted proxy names: one delays no other', async () => {
    await start(['127.0.0.0/8'])
    const greedy = Array.from({ length: 80 }, (_, index) => call(`greedy-${index}`, '203.0.113.1'))
    await vi.waitFor(() => expect(waiting.length).toBe(PLACES), 10_000)
    const other = call('other', '203.0.113.2')
    await vi.waitFor(() => expect(waiting.map(({ token }) => token)).toContain('other'), 10_000)
    expect(waiting.filter(({ token }) => token.startsWith('greedy'))).toHaveLength(PLACES)
    expect(new Set(await serve([...greedy, other]))).toEqual(new Set([200]))
  })

  it('applies to the connection without trusted proxies: a header changes nothing', async () => {
    await start([])
    const all = Array.from({ length: 80 }, (_, index) => call(`t-${index}`, `203.0.113.${index}`))
    await vi.waitFor(() => expect(waiting.length).toBe(PLACES), 10_000)
    // Time for one more to come, if one could.
    await new Promise((resolve) => setTimeout(resolve, 200))
    expect(waiting).toHaveLength(PLACES)
    expect(new Set(await serve(all))).toEqual(new Set([200]))
  })
})
