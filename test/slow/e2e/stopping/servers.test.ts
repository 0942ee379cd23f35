import { request as httpsRequest } from 'node:https'
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { createSockets } from '../../../support/sockets.ts'
import { TLS } from '../../../support/tls.ts'
import { kubeconfig, startApiServer } from '../../../support/e2e/api-server.ts'
import type { Running } from '../../../support/e2e/process.ts'
import { authConfig, freePort, proxyConfig } from '../../../support/e2e/run.ts'
import { alone } from '../../../support/e2e/workers.ts'
import { halfServer, HOLD_MS, startWith, stopWhile } from '../../../support/e2e/stopping/held.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const FREE = ['--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0']

async function proxyOf(...args: string[]) {
  const server = await halfServer(sockets)
  const files = {
    'auth.json': authConfig('none', { type: 'unauthenticated' }),
    'proxy.json': proxyConfig({
      auth: { mode: 'anonymous' },
      routes: [{ name: 'r', path: '/r', target: server.url, externalAuthConfigRef: { name: 'none' } }],
    }),
  }
  const running = await startWith(sockets, files, ['proxy', '--config', '{dir}', ...FREE, ...args])
  const { url, admin } = (await running.line('listening')) as { url: string; admin: string }
  return { ...server, running, admin, call: () => alone(`${url}/r`, { body: {} }) }
}

const messages = ({ stderr }: Running): string[] =>
  [...stderr().matchAll(/"msg":"([^"]+)"/g)].map(([, text = '']) => text)

describe.each([
  ['extauth proxy', []],
  ['extauth proxy --workers 2', ['--workers', '2']],
])('%s, asked to stop', (_name, workers) => {
  it('answers what runs to its end, seconds later, says meanwhile that it drains, and exits with 0', async () => {
    const { running, admin, begun, finish, call } = await proxyOf(...workers)
    const calls = [call(), call()]
    await begun(2)
    const readiness = delay(HOLD_MS / 2).then(async () => (await fetch(`${admin}/readiness`)).status)
    const { answer, code } = await stopWhile(running, Promise.all(calls), finish)
    expect(answer.map(({ body }) => body)).toEqual(['{"half":1}', '{"half":1}'])
    expect(await readiness).toBe(503)
    expect(code).toBe(0)
    expect(messages(running).at(-1)).toBe('stopped')
  }, 60_000)

  it('cuts what outlasts --drain-grace so that its client can tell, and says what it waits for and what it cut', async () => {
    const { running, begun, call } = await proxyOf('--drain-grace', '2s', ...workers)
    const cut = call().then(
      () => 'whole',
      () => 'torn',
    )
    await begun(1)
    const startedMs = performance.now()
    running.process.kill('SIGTERM')
    expect(await cut).toBe('torn')
    expect(performance.now() - startedMs).toBeGreaterThan(1_900)
    expect(await running.ended).toBe(0)
    expect(performance.now() - startedMs).toBeLessThan(10_000)
    expect(await running.line('draining in-flight requests')).toMatchObject({ requests: 1, graceMs: 2_000 })
    expect(await running.line('response aborted: drain timeout')).toMatchObject({
      level: 40,
      route: 'r',
      method: 'POST',
      requestId: expect.stringMatching(/./) as unknown,
    })
  }, 60_000)

  it('ends at once, with 1, at a second signal', async () => {
    const { running, begun, call } = await proxyOf('--drain-grace', '60s', ...workers)
    const cut = call().catch(() => 'torn')
    await begun(1)
    running.process.kill('SIGTERM')
    await delay(1_000)
    running.process.kill('SIGTERM')
    expect(await running.ended).toBe(1)
    expect(await cut).toBe('torn')
  }, 60_000)
})

describe('extauth registry, asked to stop', () => {
  it('answers what runs to its end, seconds later, and exits with 0', async () => {
    const held: (() => void)[] = []
    const introspection = await sockets.http((_request, response) => {
      held.push(() => {
        response.setHeader('content-type', 'application/json')
        response.end(JSON.stringify({ active: true, aud: 'a', sub: 's', exp: Date.now() / 1000 + 60 }))
      })
    })
    const provider = { name: 'idp', issuerUrl: 'http://127.0.0.1:1', audience: 'a', introspectionUrl: introspection }
    const files = {
      'registry.json': JSON.stringify({
        auth: { mode: 'oauth', oauth: { resourceUrl: 'http://127.0.0.1/', providers: [provider] } },
        registries: [{ name: 'default', source: { file: 'servers.json' } }],
      }),
      'servers.json': '[{"name":"com.example/one","version":"1.0.0","description":"One."}]',
    }
    const free = ['--address', '127.0.0.1:0', '--internal-address', '127.0.0.1:0']
    const running = await startWith(sockets, files, ['registry', '--config', '{dir}/registry.json', ...free])
    const { url } = (await running.line('listening')) as { url: string }
    const headers = { authorization: 'Bearer an-opaque-token' }
    const call = alone(`${url}/registry/default/v0.1/servers`, { method: 'GET', headers })
    await vi.waitFor(() => expect(held).toHaveLength(1), { timeout: 20_000 })
    const { answer, code } = await stopWhile(running, call, () => held[0]?.())
    expect(answer.status).toBe(200)
    expect(answer.body).toContain('com.example/one')
    expect(code).toBe(0)
  }, 60_000)
})

describe('extauth operator, asked to stop', () => {
  it('answers reviews on, seconds later, and exits with 0', async () => {
    const [port, { url }] = await Promise.all([freePort(), startApiServer(sockets)])
    const files = { kubeconfig: kubeconfig(url), 'tls.crt': TLS.server.cert, 'tls.key': TLS.server.key }
    const webhook = ['--webhook-address', `127.0.0.1:${port}`, '--webhook-cert-dir', '{dir}']
    const where = ['--kubeconfig', '{dir}/kubeconfig', '--namespace', 'n', '--operator-namespace', 'n']
    const running = await startWith(sockets, files, ['operator', ...where, ...webhook, '--admin', '127.0.0.1:0'])
    const review = JSON.stringify({
      apiVersion: 'admission.k8s.io/v1',
      kind: 'AdmissionReview',
      request: { uid: 'u1', kind: { group: '', version: 'v1', kind: 'Pod' }, namespace: 'n', operation: 'DELETE' },
    })
    /** A review whose second half is sent when it is released. */
    const ask = () => {
      const answered = Promise.withResolvers<string>()
      const headers = { 'content-type': 'application/json', 'content-length': review.length }
      const where = { host: '127.0.0.1', port, path: '/validate', method: 'POST', ca: TLS.ca, agent: false, headers }
      const request = httpsRequest(where, (response) => {
        response.on('data', (chunk: Buffer) => answered.resolve(chunk.toString()))
      })
      request.on('error', (error) => answered.reject(error)).write(review.slice(0, 20))
      return { answered: answered.promise, finish: () => void request.end(review.slice(20)) }
    }
    const answerOf = (): Promise<string> => {
      const { answered, finish } = ask()
      finish()
      return answered
    }
    await vi.waitFor(async () => expect(await answerOf()).toContain('"allowed":true'), {
      timeout: 30_000,
      interval: 100,
    })
    const held = ask()
    const later = delay(HOLD_MS).then(answerOf)
    const { answer, code } = await stopWhile(running, Promise.all([held.answered, later]), held.finish)
    expect(answer.map((text) => JSON.parse(text) as unknown)).toMatchObject([
      { response: { allowed: true } },
      { response: { allowed: true } },
    ])
    expect(code).toBe(0)
  }, 60_000)
})
