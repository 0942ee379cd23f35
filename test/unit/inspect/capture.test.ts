import { createHash } from 'node:crypto'
import { createServer, request as httpRequest } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { inspect } from 'node:util'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { monotonicNow, Secret } from '../../../src/core/index.ts'
import { type Capture, createCapture } from '../../../src/inspect/capture.ts'
import { describe as describeRecord } from '../../../src/inspect/describe.ts'
import { createRoute, headerCredential, type RouteOptions, runtimeOf, startProxy } from '../../support/proxy/harness.ts'
import { createRecordingLog } from '../../support/ports.ts'
import { createSockets } from '../../support/sockets.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

async function start(
  mode: 'heads' | 'bodies',
  listener: Parameters<typeof sockets.http>[0],
  route: RouteOptions = {},
  maxBytes = 8 * 1024 * 1024,
  headerLimitBytes = 16 * 1024,
  signingOf: () => undefined = () => undefined,
) {
  const log = createRecordingLog()
  const capture = createCapture({
    mode,
    maxBytes,
    showClaims: false,
    clock: Date,
    log,
    monotonicMs: monotonicNow,
    decisionOf: () => undefined,
    rulesOf: () => undefined,
    signingOf,
  })
  let count = 0
  const more = { observer: capture.observer, newRequestId: () => `request-${++count}` }
  const origin = `http://${await sockets.listen(createServer({ maxHeaderSize: 2 * headerLimitBytes }, listener))}`
  const proxy = await startProxy(sockets, runtimeOf([createRoute(sockets, origin, route)]), { headerLimitBytes }, more)
  return { capture, proxy, log }
}

async function only(capture: Capture, id = 'request-1') {
  await vi.waitFor(() => expect(capture.find(id)?.summary.isOpen).toBe(false))
  const record = capture.find(id)
  if (record === undefined) throw new Error('not kept')
  return describeRecord(record)
}

describe('what is captured', () => {
  it('has each attempt and why there was another', async () => {
    const statuses = [401, 200]
    const { capture, proxy } = await start(
      'heads',
      (_, response) => void response.writeHead(statuses.shift() ?? 200).end(),
      {
        ownedHeaders: ['x-api-key'],
        credential: () => headerCredential('x-api-key', 'the-credential-0001'),
        reject: () => true,
      },
    )
    await (await fetch(proxy.url)).text()
    const { attempts, summary, timeline } = await only(capture)
    expect(summary).toMatchObject({ attempts: 2, status: 200, reason: '' })
    expect(attempts.map(({ again, status }) => [again?.reason, status])).toEqual([
      ['credential_rejected', 401],
      [undefined, 200],
    ])
    expect(timeline.filter(({ name }) => name === 'credential').map(({ attempt }) => attempt)).toEqual([1, 2])
  })

  it('has the beginning of a body that is streamed, and the backend gets all of it', async () => {
    const size = 3 * 1024 * 1024
    const digest = (data: Buffer): string => createHash('sha256').update(data).digest('hex')
    const body = Buffer.from(Array.from({ length: size }, (_, index) => 97 + (index % 26)))
    const received = createHash('sha256')
    const { capture, proxy } = await start('bodies', (request, response) => {
      request.on('data', (chunk: Buffer) => received.update(chunk))
      request.on('end', () => response.end('{}'))
    })
    const answer = await fetch(proxy.url, { method: 'POST', body, headers: { 'content-type': 'text/plain' } })
    expect(await answer.text()).toBe('{}')
    expect(received.digest('hex')).toBe(digest(body))
    const { requestBody } = await only(capture)
    expect(requestBody?.bytes).toBe(size)
    expect(requestBody?.cut).toBe('longer')
    expect(requestBody?.text).toBe(body.toString('latin1', 0, 64 * 1024))
  })

  it('keeps no bodies with heads, but says what a request is about', async () => {
    const { capture, proxy } = await start('heads', (_, response) => void response.end('{"secret":"no-body"}'))
    const call = {
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'echo', arguments: { text: 'no-body' } },
    }
    await (await fetch(proxy.url, { method: 'POST', body: JSON.stringify(call) })).text()
    const shown = await only(capture)
    expect(shown.summary).toMatchObject({ rpcMethod: 'tools/call', rpcName: 'echo' })
    expect(JSON.stringify(shown)).not.toContain('no-body')
  })

  it('holds nothing secret when the request is over', async () => {
    const { capture, proxy } = await start(
      'bodies',
      (_, response) => void response.end('the-credential-0001 the-token-0002'),
      {
        ownedHeaders: ['x-api-key'],
        credential: () => headerCredential('x-api-key', 'the-credential-0001'),
      },
    )
    await (await fetch(proxy.url, { headers: { authorization: 'Bearer the-token-0002' } })).text()
    const { responseBody } = await only(capture)
    expect(responseBody?.text).toBe('[masked] [masked]')
    const all = inspect([capture.find('request-1'), capture.list()], { depth: 20, showHidden: true })
    expect(all).not.toMatch(/the-credential|the-token/)
  })

  it('is bounded by bytes: the oldest go, and it says how many', async () => {
    const { capture, proxy } = await start(
      'bodies',
      (_, response) => void response.end('x'.repeat(20_000)),
      {},
      128 * 1024,
    )
    for (let index = 0; index < 8; index++) await (await fetch(proxy.url)).text()
    await only(capture, 'request-8')
    const { requests, dropped } = capture.list()
    expect(requests.length + dropped).toBe(8)
    expect(requests.length).toBeLessThan(7)
    expect(requests.at(-1)?.id).toBe('request-8')
  })

  it('takes a megabyte of headers for what it is: cut, bounded, and nothing secret at the cut', async () => {
    const { capture, proxy } = await start('heads', (_, response) => void response.end(), {}, 8 * 1024 * 1024, 2 ** 21)
    const token = 'the-token-0123456789'
    const many = Array.from({ length: 200 }, (_, index) => [`x-many-${index}`, 'y'.repeat(4000)])
    const headers = {
      ...Object.fromEntries(many),
      authorization: `Bearer ${token}`,
      'x-long': `${'z'.repeat(4090)}${token}${'z'.repeat(300_000)}`,
    }
    await new Promise<void>((resolve, reject) => {
      const request = httpRequest(proxy.url, { headers }, (response) => {
        response.resume().on('end', resolve)
      })
      request.on('error', reject).end()
    })
    const { received } = await only(capture)
    const long = received.headers.find(([name]) => name === 'x-long')?.[1] ?? ''
    expect(received.headers.length).toBeGreaterThan(200)
    expect(long.length).toBe(4097)
    expect(JSON.stringify(received)).not.toContain('the-t')
  }, 30_000)

  it('that can not be kept breaks no answer', async () => {
    const broken = () => {
      throw new TypeError('broken')
    }
    const credential = () => ({
      kind: 'aws' as const,
      accessKeyId: 'ASIAEXAMPLE0001',
      secretAccessKey: new Secret('s'.repeat(40)),
      sessionToken: new Secret('t'.repeat(40)),
      region: 'r',
      service: 's',
      signing: { day: '', key: undefined },
    })
    const { capture, proxy, log } = await start(
      'heads',
      (_, response) => void response.end('fine'),
      { credential },
      8 * 1024 * 1024,
      16 * 1024,
      broken,
    )
    expect(await (await fetch(proxy.url)).text()).toBe('fine')
    await vi.waitFor(() => expect(log.lines.join()).toContain('the inspector could not keep a request'))
    expect(capture.list().requests).toEqual([])
  })

  it('is sent to followers in batches, not one by one', async () => {
    const { capture, proxy } = await start('heads', (_, response) => void response.end())
    const batches: number[] = []
    const stop = capture.follow(
      ({ requests }) => batches.push(requests.length),
      () => undefined,
    )
    await Promise.all(Array.from({ length: 20 }, async () => (await fetch(proxy.url)).text()))
    await vi.waitFor(() => expect(new Set(capture.list().requests.filter(({ isOpen }) => !isOpen)).size).toBe(20))
    await vi.waitFor(() => expect(batches.reduce((sum, one) => sum + one, 0)).toBeGreaterThanOrEqual(20))
    expect(batches.length).toBeLessThan(20)
    stop()
    const before = batches.length
    await (await fetch(proxy.url)).text()
    await delay(250)
    expect(batches.length).toBe(before)
  })
})
