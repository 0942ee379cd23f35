import type { IncomingMessage } from 'node:http'
import { Agent, request as httpsRequest } from 'node:https'
import { connect } from 'node:tls'
import { once } from 'node:events'
import { afterEach, describe, expect, it } from 'vitest'
import { Secret } from '../../../src/core/index.ts'
import {
  type Decide,
  MUTATE_PATH,
  startWebhookServer,
  VALIDATE_PATH,
  type WebhookServer,
} from '../../../src/operator/webhook/server.ts'
import { createRecordingLog, createRecordingMetrics } from '../../support/ports.ts'
import { TLS } from '../../support/tls.ts'

let server: WebhookServer | undefined
afterEach(() => server?.close())

const certificateOf = ({ cert, key }: { cert: Buffer; key: Buffer }) => ({
  cert: cert.toString(),
  key: new Secret(key.toString()),
  notBeforeMs: 0,
  notAfterMs: Number.MAX_SAFE_INTEGER,
})

const decide: Decide = ({ namespace }) => {
  if (namespace === 'broken') throw new Error('as it happens')
  return namespace === 'good' ? { allowed: true } : { allowed: false, message: 'only in namespace good' }
}

const start = async (leaveMs = 0, validate = decide): Promise<WebhookServer> =>
  (server = await startWebhookServer({
    leaveMs,
    address: '127.0.0.1:0',
    certificate: certificateOf(TLS.server),
    validate,
    mutate: () => ({ allowed: true }),
    log: createRecordingLog(),
    metrics: createRecordingMetrics(),
    now: () => Date.now(),
  }))

const reviewFor = (namespace: string, object: unknown = { metadata: { name: 'p' } }): string =>
  JSON.stringify({
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    request: { uid: 'u1', kind: { group: '', version: 'v1', kind: 'Pod' }, namespace, operation: 'CREATE', object },
  })

const podOf = (spec: object): object => ({ metadata: { name: 'p' }, spec })

function send(
  port: number,
  path: string,
  body: string | Buffer,
  method = 'POST',
  agent: Agent | false = false,
  type = 'application/json; charset=utf-8',
): Promise<{ status: number; text: string; connection: string | undefined }> {
  const headers = { 'content-type': type, 'content-length': Buffer.byteLength(body) }
  return new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port, path, method, headers, rejectUnauthorized: false, agent }
    const request = httpsRequest(options, (response) => {
      let text = ''
      response.on('data', (chunk: Buffer) => (text += chunk.toString()))
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, text, connection: response.headers.connection }),
      )
    })
    request.on('error', reject).end(body)
  })
}

const fingerprintOf = async (port: number): Promise<string> => {
  const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false })
  await once(socket, 'secureConnect')
  const { fingerprint256 } = socket.getPeerCertificate()
  socket.destroy()
  return fingerprint256
}

describe('the server that the API server asks', () => {
  it('answers reviews with its decision', async () => {
    const { port } = await start()
    const good = await send(port, VALIDATE_PATH, reviewFor('good'))
    expect([good.status, JSON.parse(good.text)]).toMatchObject([200, { response: { uid: 'u1', allowed: true } }])
    const other = await send(port, VALIDATE_PATH, reviewFor('other'))
    expect(JSON.parse(other.text)).toMatchObject({ response: { allowed: false, status: { code: 422 } } })
  })

  it.each([
    ['another path', '/other', reviewFor('good'), 'POST', 404],
    ['another method', VALIDATE_PATH, '', 'GET', 405],
    ['what is no review', VALIDATE_PATH, '{}', 'POST', 400],
    ['what is no JSON', VALIDATE_PATH, '{', 'POST', 400],
    ['a creation of nothing', VALIDATE_PATH, reviewFor('good', null), 'POST', 400],
    ['an object without metadata', VALIDATE_PATH, reviewFor('good', {}), 'POST', 400],
    ['labels that are no map', VALIDATE_PATH, reviewFor('good', { metadata: { labels: [] } }), 'POST', 400],
    ['containers that are no list', MUTATE_PATH, reviewFor('good', podOf({ containers: 'x' })), 'POST', 400],
    ['a container that is nothing', MUTATE_PATH, reviewFor('good', podOf({ containers: [null] })), 'POST', 400],
    [
      'bytes that are no UTF-8',
      VALIDATE_PATH,
      Buffer.from(reviewFor('good').replace('u1', 'ü1'), 'latin1'),
      'POST',
      400,
    ],
    ['more than 3 MiB, and lets its client read so', VALIDATE_PATH, 'x'.repeat(8 * 1024 * 1024), 'POST', 413],
  ])('refuses %s', async (_what, path, body, method, status) => {
    const { port } = await start()
    expect((await send(port, path, body, method)).status).toBe(status)
  })

  it('refuses what does not say that it is JSON, and lets nothing by when a decision fails', async () => {
    const { port } = await start()
    const form = await send(port, VALIDATE_PATH, reviewFor('good'), 'POST', false, 'text/plain')
    expect([form.status, form.connection]).toEqual([415, 'close'])
    expect((await send(port, VALIDATE_PATH, reviewFor('broken'))).status).toBe(500)
  })

  it.each(['application/json-patch+json', 'application/jsonx', 'text/plain', ''])(
    'refuses a body that is said to be "%s"',
    async (type) => {
      const { port } = await start()
      expect((await send(port, VALIDATE_PATH, reviewFor('good'), 'POST', false, type)).status).toBe(415)
    },
  )

  it('answers on while it leaves, each time for the last time on that connection, and then no more', async () => {
    const running = await start(1_000)
    const { port } = running
    const agent = new Agent({ keepAlive: true })
    try {
      expect((await send(port, VALIDATE_PATH, reviewFor('good'), 'POST', agent)).connection).toBe('keep-alive')
      const closed = running.close()
      const last = await send(port, VALIDATE_PATH, reviewFor('good'), 'POST', agent)
      expect([last.status, last.connection]).toEqual([200, 'close'])
      await closed
      await expect(send(port, VALIDATE_PATH, reviewFor('good'))).rejects.toMatchObject({ code: 'ECONNREFUSED' })
    } finally {
      agent.destroy()
    }
  })

  it('takes another certificate without a restart', async () => {
    const running = await start()
    const { port } = running
    const before = await fingerprintOf(port)
    running.use(certificateOf(TLS.otherServer))
    expect(await fingerprintOf(port)).not.toBe(before)
  })

  it('evaluates one review of a namespace at a time, and delays no other namespace', async () => {
    const held = Promise.withResolvers<{ allowed: true }>()
    let evaluated = 0
    const { port } = await start(0, (review, signal) => {
      evaluated++
      return review.namespace === 'slow' ? held.promise : decide(review, signal)
    })
    const slow = Array.from({ length: 70 }, () => send(port, VALIDATE_PATH, reviewFor('slow')))
    const busy = await Promise.any(slow)
    expect(JSON.parse(busy.text)).toMatchObject({
      response: { allowed: false, status: { code: 429, details: { retryAfterSeconds: 1 } } },
    })
    expect((await send(port, VALIDATE_PATH, reviewFor('good'))).status).toBe(200)
    expect(evaluated).toBe(2)
    held.resolve({ allowed: true })
    const allowed = (await Promise.all(slow)).filter(({ text }) => text.includes('"allowed":true'))
    expect(allowed).toHaveLength(65)
  })

  it('aborts a review whose client has gone, and starts the next', async () => {
    const ended = Promise.withResolvers<boolean>()
    const begun = Promise.withResolvers<void>()
    const { port } = await start(0, async (_review, signal) => {
      if (signal.aborted) return undefined
      begun.resolve()
      await once(signal, 'abort')
      ended.resolve(signal.aborted)
      return undefined
    })
    const body = reviewFor('slow')
    const request = httpsRequest({
      host: '127.0.0.1',
      port,
      path: VALIDATE_PATH,
      method: 'POST',
      rejectUnauthorized: false,
      agent: false,
      headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) },
    })
    request.on('error', () => undefined).end(body)
    await begun.promise
    request.destroy()
    expect(await ended.promise).toBe(true)
  })

  it('keeps idle connections longer than API servers do', async () => {
    const { port } = await start()
    const agent = new Agent({ keepAlive: true })
    const body = reviewFor('good')
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }
    const request = httpsRequest({
      host: '127.0.0.1',
      port,
      path: VALIDATE_PATH,
      method: 'POST',
      headers,
      rejectUnauthorized: false,
      agent,
    })
    const answered = once(request, 'response') as Promise<[IncomingMessage]>
    request.end(body)
    const [response] = await answered
    agent.destroy()
    expect(Number(/timeout=(\d+)/.exec(String(response.headers['keep-alive']))?.[1])).toBeGreaterThan(90)
  })
})
