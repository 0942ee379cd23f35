import { createServer } from 'node:http'
import { afterEach, expect, it, vi } from 'vitest'
import { Failure, monotonicNow } from '../../../src/core/index.ts'
import { type Batch, createCapture } from '../../../src/inspect/capture.ts'
import { describe as describeRecord } from '../../../src/inspect/describe.ts'
import { createRoute, headerCredential, type RouteOptions, runtimeOf, startProxy } from '../../support/proxy/harness.ts'
import { createRecordingLog } from '../../support/ports.ts'
import { createSockets } from '../../support/sockets.ts'

/** The page's own, which has no types. */
const { merged } = (await import(new URL('../../../src/inspect/page/filters.js', import.meta.url).href)) as {
  merged: (
    requests: readonly { id: string }[],
    batch: Batch['requests'],
    most: number,
    gone: readonly string[],
  ) => { id: string }[]
}

const sockets = createSockets()
afterEach(() => sockets.closeAll())

async function watched(statuses: readonly number[], route: RouteOptions, maxBytes = 1e6) {
  const left = [...statuses]
  const capture = createCapture({
    mode: 'bodies',
    maxBytes,
    showClaims: false,
    clock: Date,
    log: createRecordingLog(),
    monotonicMs: monotonicNow,
    decisionOf: () => undefined,
    rulesOf: () => undefined,
    signingOf: () => undefined,
  })
  let count = 0
  const more = { observer: capture.observer, newRequestId: () => `request-${++count}` }
  const backend = createServer((_, response) => {
    response.writeHead(left.shift() ?? 200, { 'x-of-the-backend': 'plain' }).end()
  })
  const origin = `http://${await sockets.listen(backend)}`
  const proxy = await startProxy(sockets, runtimeOf([createRoute(sockets, origin, route)]), {}, more)
  const shown = async (id: string) => {
    await vi.waitFor(() => expect(capture.find(id)?.summary.isOpen).toBe(false))
    const record = capture.find(id)
    if (record === undefined) throw new Error('not kept')
    return describeRecord(record)
  }
  return { capture, proxy, shown }
}

it('an answer of our own says so of the headers of the one that it replaces, and why it was made', async () => {
  const credential = () => headerCredential('x-api-key', 'the-credential-0001')
  const { proxy, shown } = await watched([401], { ownedHeaders: ['x-api-key'], credential, reject: () => false })
  expect((await fetch(`${proxy.url}/a/b`)).status).toBe(502)
  const { answer, why } = await shown('request-1')
  expect(answer.dropped).toContainEqual({ name: 'x-of-the-backend', value: 'plain', rule: 'answered_by_us' })
  expect(new Set(answer.dropped.map(({ rule }) => rule))).toEqual(new Set(['answered_by_us']))
  expect(why).toMatchObject({ reason: 'backend_rejected_credential', who: 'the operator of the backend' })
})

it('a try is a repeat only where something was sent again', async () => {
  let obtained = 0
  const credential = () => {
    obtained++
    if (obtained > 1) throw new Error('none to be had')
    return headerCredential('x-api-key', 'the-credential-0001')
  }
  const { proxy, shown } = await watched([401], { ownedHeaders: ['x-api-key'], credential, reject: () => true })
  await fetch(`${proxy.url}/a/b`)
  const { attempts } = await shown('request-1')
  expect(attempts.map(({ isRepeated }) => isRepeated)).toEqual(attempts.map(() => false))
  const again = await watched([401, 200], {
    ownedHeaders: ['x-api-key'],
    credential: () => headerCredential('x-api-key', 'the-credential-0001'),
    reject: () => true,
  })
  await fetch(`${again.proxy.url}/a/b`)
  const twice = await again.shown('request-1')
  expect(twice.attempts.map(({ isRepeated }) => isRepeated)).toEqual([true, false])
})

it('followers are notified of evicted requests, and the list has no others', async () => {
  const { capture, proxy } = await watched([], {}, 6000)
  const batches: Batch[] = []
  const stop = capture.follow(
    (batch) => batches.push(batch),
    () => undefined,
  )
  for (let index = 0; index < 10; index++) await fetch(`${proxy.url}/a/${index}`)
  const kept = () =>
    batches.reduce<{ id: string }[]>((list, { requests, gone }) => merged(list, requests, 600, gone), [])
  await vi.waitFor(() => {
    expect(kept().map(({ id }) => id)).toEqual(capture.list().requests.map(({ id }) => id))
    expect(kept().at(-1)?.id).toBe('request-10')
  })
  expect(kept().length).toBeLessThan(10)
  stop()
})

it('a request that is refused before the backend has its method, its tool and its body, masked', async () => {
  const refused = () => {
    throw new Failure('invalid_token', { rule: 'exp_passed', challenge: { error: 'invalid_token' } })
  }
  const { proxy, shown } = await watched([], { caller: refused })
  const params = { name: 'echo', arguments: { text: 'of-the-caller-0003' } }
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })
  const headers = { authorization: 'Bearer of-the-caller-0003', 'content-type': 'application/json' }
  expect((await fetch(proxy.url, { method: 'POST', body, headers })).status).toBe(401)
  const { summary, requestBody, why } = await shown('request-1')
  expect(summary).toMatchObject({ rpcMethod: 'tools/call', rpcName: 'echo', status: 401 })
  expect(requestBody?.text).toBe(body.replace('of-the-caller-0003', '[masked]'))
  expect(why?.cause).toMatch(/has expired/)
})
