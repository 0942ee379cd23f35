import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { createSockets } from '../../support/sockets.ts'
import { TLS } from '../../support/tls.ts'
import { startWith } from '../../support/e2e/stopping/held.ts'
import { type ReceiverSettings, startReceiver } from '../../support/telemetry/receiver.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())
const PATIENT = { timeout: 30_000, interval: 50 }

const receiverWith = async (settings: ReceiverSettings = {}) => sockets.closing(await startReceiver(settings))
const backend = () => sockets.http((request, response) => void response.end(JSON.stringify(request.headers)))

const document = (kind: string, name: string, spec: object): object => ({
  apiVersion: 'toolhive.stacklok.dev/v1beta1',
  kind,
  metadata: { name },
  spec,
})
const files = (...items: readonly object[]) => ({
  'all.json': JSON.stringify({ apiVersion: 'v1', kind: 'List', items }),
})
const ALL = { enabled: true, samplingRate: '1' }
const config = (name: string, openTelemetry: object) =>
  document('MCPTelemetryConfig', name, { openTelemetry: { enabled: true, tracing: ALL, ...openTelemetry } })
const remote = (name: string, remoteUrl: string, more: object) =>
  document('MCPRemoteProxy', name, { remoteUrl: `${remoteUrl}/mcp`, ...more })

async function start(given: Readonly<Record<string, string | Buffer>>, env: Readonly<Record<string, string>> = {}) {
  const places = ['--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0', '--secrets-dir', '{dir}/secrets']
  // Batches are sent at once, so that the test does not wait.
  const running = await startWith(sockets, given, ['proxy', '--config', '{dir}/all.json', ...places], { env })
  const { url } = (await running.line('listening')) as { url: string }
  return { running, url }
}

/** Stops it, which exports what is left. */
async function stopped(running: Awaited<ReturnType<typeof start>>['running']): Promise<void> {
  running.process.kill('SIGTERM')
  expect(await running.ended).toBe(0)
}

describe('the receiver that an MCPTelemetryConfig names', () => {
  it('gets the spans of the workload: over TLS by its authority, with plain and secret headers, as protobuf', async () => {
    const isKnown = (headers: Readonly<Record<string, unknown>>) =>
      headers['authorization'] === 'Bearer of-the-receiver'
    const receiver = await receiverWith({ tls: TLS.server, statusOf: (headers) => (isKnown(headers) ? 200 : 401) })
    const traces = config('traces', {
      endpoint: receiver.url,
      headers: { 'X-Scope': 'tools' },
      sensitiveHeaders: [{ name: 'Authorization', secretKeyRef: { name: 'otel', key: 'token' } }],
      caBundleRef: { configMapRef: { name: 'company-ca', key: 'ca.crt' } },
      resourceAttributes: { 'deployment.environment': 'test' },
    })
    const telemetryConfigRef = { name: 'traces', serviceName: 'measured' }
    const { running, url } = await start(
      {
        ...files(traces, remote('tools', await backend(), { telemetryConfigRef })),
        'secrets/otel/token': 'Bearer of-the-receiver\n',
        'secrets/company-ca/ca.crt': TLS.ca,
      },
      // Nothing of the environment's own receiver goes to another one.
      { OTEL_EXPORTER_OTLP_HEADERS: 'x-other=of-the-process' },
    )
    const answer = (await (await fetch(url)).json()) as Record<string, string>
    expect(answer['traceparent']).toMatch(/^00-/)
    await stopped(running)
    const [request] = receiver.requests
    expect(request).toMatchObject({
      path: '/v1/traces',
      headers: {
        'content-type': 'application/x-protobuf',
        'x-scope': 'tools',
        authorization: 'Bearer of-the-receiver',
      },
    })
    expect(request?.headers).not.toHaveProperty('x-other')
    for (const text of ['GET /', 'measured', 'deployment.environment', 'service.namespace'])
      expect(request?.body.toString('latin1')).toContain(text)
    expect(running.stdout() + running.stderr()).not.toContain('of-the-receiver')
  }, 60_000)

  it('is the one of each route: two workloads, two receivers, and the process has a third for others', async () => {
    const [one, two, own] = [await receiverWith(), await receiverWith(), await receiverWith()]
    const given = files(
      config('first', { endpoint: one.url.replace('http://', ''), insecure: true }),
      remote('a', await backend(), { telemetryConfigRef: { name: 'first' } }),
      remote('b', await backend(), {
        telemetry: {
          openTelemetry: {
            enabled: true,
            endpoint: two.url,
            serviceName: 'b-by-name',
            headers: ['X-Key=1=2'],
            tracing: ALL,
          },
        },
      }),
      remote('c', await backend(), {}),
    )
    const { running, url } = await start(given, { OTEL_EXPORTER_OTLP_ENDPOINT: own.url })
    for (const name of ['a', 'b', 'c', 'nowhere']) await fetch(`${url}/${name}`)
    await stopped(running)
    const bodies = (receiver: typeof one) => receiver.requests.map(({ body }) => body.toString('latin1')).join('')
    expect(['GET /a', 'GET /b', 'GET /c'].map((name) => bodies(one).includes(name))).toEqual([true, false, false])
    expect(['GET /a', 'GET /b', 'GET /c'].map((name) => bodies(two).includes(name))).toEqual([false, true, false])
    expect(['GET /a', 'GET /b', 'GET /c'].map((name) => bodies(own).includes(name))).toEqual([false, false, true])
    expect(bodies(two)).toContain('b-by-name')
    expect(two.requests[0]?.headers['x-key']).toBe('1=2')
    expect(bodies(own)).toContain('not_found')
  }, 60_000)

  it('is added and removed by a reload; a changed secret is sent; a rejecting receiver is logged once', async () => {
    const receiver = await receiverWith({ statusOf: ({ authorization }) => (authorization === 'new' ? 200 : 401) })
    const remoteUrl = await backend()
    const plain = files(remote('tools', remoteUrl, {}))
    const { running, url } = await start({ ...plain, 'secrets/otel/token': 'old' })
    await fetch(url)
    const traces = config('traces', {
      endpoint: receiver.url,
      sensitiveHeaders: [{ name: 'Authorization', secretKeyRef: { name: 'otel', key: 'token' } }],
    })
    const followed = files(traces, remote('tools', remoteUrl, { telemetryConfigRef: { name: 'traces' } }))
    const write = (name: string, text: string) => writeFile(path.join(running.directory, name), text)
    await write('all.json', followed['all.json'])
    await vi.waitFor(async () => {
      await fetch(url)
      expect(receiver.requests.at(-1)?.headers.authorization).toBe('old')
    }, PATIENT)
    await running.line('traces dropped, receiver unavailable')
    await write('secrets/otel/token', 'new')
    await vi.waitFor(async () => {
      await fetch(url)
      expect(receiver.requests.at(-1)?.headers.authorization).toBe('new')
    }, PATIENT)
    await running.line('trace receiver available again')
    await write('all.json', plain['all.json'])
    await vi.waitFor(async () => {
      const headers = (await (await fetch(url)).json()) as Record<string, string>
      expect(headers).not.toHaveProperty('traceparent')
    }, PATIENT)
    await stopped(running)
    expect(running.stderr().split('traces dropped').length).toBe(2)
  }, 60_000)

  it('gets nothing where the SDK is off, where it is not enabled, or where a sample leaves it out', async () => {
    const receiver = await receiverWith()
    const given = (more: object) =>
      files(
        config('t', { endpoint: receiver.url, ...more }),
        remote('tools', 'http://127.0.0.1:9', { telemetryConfigRef: { name: 't' } }),
      )
    const runs: [object, Readonly<Record<string, string>>][] = [
      [{}, { OTEL_SDK_DISABLED: 'true' }],
      [{ enabled: false }, {}],
      [{ tracing: { enabled: true, samplingRate: '0' } }, {}],
    ]
    for (const [more, env] of runs) {
      const { running, url } = await start(given(more), env)
      await fetch(url)
      await stopped(running)
    }
    expect(receiver.requests).toEqual([])
  }, 60_000)

  it('is asked by check, which names a secret that is missing', async () => {
    const receiver = await receiverWith({ statusOf: ({ authorization }) => (authorization === 'right' ? 200 : 401) })
    const traces = config('traces', {
      endpoint: receiver.url,
      sensitiveHeaders: [{ name: 'Authorization', secretKeyRef: { name: 'otel', key: 'token' } }],
    })
    const given = files(traces, remote('tools', await backend(), { telemetryConfigRef: { name: 'traces' } }))
    const check = async (secrets: Readonly<Record<string, string>>): Promise<string> => {
      const args = ['check', '-v', '--config', '{dir}/all.json', '--secrets-dir', '{dir}/secrets']
      const running = await startWith(sockets, { ...given, ...secrets }, args)
      await running.ended
      return running.stdout() + running.stderr()
    }
    expect(await check({ 'secrets/otel/token': 'right' })).toMatch(/traces .*accepts exports/)
    expect(receiver.requests[0]?.headers['content-type']).toBe('application/x-protobuf')
    expect(await check({ 'secrets/otel/token': 'wrong-one' })).toMatch(/traces .*401/)
    const without = await check({ 'secrets/otel/other': 'x' })
    expect(without).toContain('openTelemetry.sensitiveHeaders.0.secretKeyRef')
    expect(without).not.toContain('accepts exports')
  }, 60_000)
})
