import { afterEach, describe, expect, it } from 'vitest'
import { type Metrics, OutboundError } from '../../src/core/index.ts'
import { createOutbound, type OutboundOptions } from '../../src/net/index.ts'
import { createSockets } from '../support/sockets.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const outbound = (options: Partial<OutboundOptions> = {}) => {
  return sockets.closing(createOutbound({ name: 'idp', clock: Date, ...options }))
}
const failure = async (promise: Promise<unknown>): Promise<OutboundError> => {
  const error = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  if (!(error instanceof OutboundError)) throw new Error('no OutboundError was thrown', { cause: error })
  return error
}

/** Metrics whose only gauge writes its values into `seen`, labelled by name. */
const gaugeMetrics = (seen: string[]): Metrics => ({
  counter: () => ({ with: () => ({ add: () => undefined }) }),
  gauge: (name, _help, labels) => ({
    with: (...values) => ({
      set: (value) => seen.push(`${name}{${labels?.join()}=${values.join()}} ${value}`),
      add: () => undefined,
    }),
  }),
  histogram: () => ({ with: () => ({ observe: () => undefined }) }),
})

describe('the breaker', () => {
  it('opens after five failures, refuses with a time to come back, lets one probe through and closes', async () => {
    let now = 1_000_000
    let requests = 0
    let status = 500
    const url = await sockets.http((_request, response) => {
      requests++
      setTimeout(() => response.writeHead(status).end(), 20)
    })
    const states: string[] = []
    const client = outbound({ clock: { now: () => now }, metrics: gaugeMetrics(states) })
    const get = () => client.request({ method: 'GET', url })
    for (let i = 0; i < 5; i++) expect((await get()).status).toBe(500)
    const refused = await failure(get())
    expect([refused.kind, refused.retryAfterSeconds, requests]).toEqual(['breaker_open', 1, 5])

    now += 1001
    const probes = await Promise.allSettled([get(), get(), get()])
    expect(probes.map((probe) => probe.status)).toEqual(['fulfilled', 'rejected', 'rejected'])
    expect(requests).toBe(6)
    now += 1001
    expect((await failure(get())).retryAfterSeconds).toBe(1)

    now += 1000
    status = 200
    expect((await get()).status).toBe(200)
    expect((await Promise.all([get(), get(), get()])).map((answer) => answer.status)).toEqual([200, 200, 200])
    expect(states).toEqual([0, 1, 2, 1, 2, 0].map((state) => `extauth_breaker_state{name=idp} ${state}`))
  })

  it.each([400, 401, 403, 404, 429])('is not opened by %i', async (status) => {
    const url = await sockets.http((_request, response) => response.writeHead(status).end())
    const client = outbound()
    for (let i = 0; i < 12; i++) expect((await client.request({ method: 'GET', url })).status).toBe(status)
  })

  it('is opened by timeouts and by connections that fail', async () => {
    const silent = await sockets.tcp(() => undefined)
    for (const [url, kind] of [
      [silent, 'timeout'],
      ['http://127.0.0.1:1', 'unreachable'],
    ] as const) {
      const client = outbound({ deadlineMs: 30, breaker: { failures: 2 } })
      expect((await failure(client.request({ method: 'GET', url }))).kind).toBe(kind)
      expect((await failure(client.request({ method: 'GET', url }))).kind).toBe(kind)
      expect((await failure(client.request({ method: 'GET', url }))).kind).toBe('breaker_open')
    }
  })
})

describe('the concurrency bound', () => {
  it('lets so many through at a time, queues so many, and refuses the next', async () => {
    let active = 0
    let most = 0
    const url = await sockets.http((_request, response) => {
      most = Math.max(most, ++active)
      setTimeout(() => {
        active--
        response.end()
      }, 30)
    })
    const client = outbound({ maxConcurrent: 2, maxQueued: 3 })
    const results = await Promise.allSettled(Array.from({ length: 7 }, () => client.request({ method: 'GET', url })))
    const refused = results.flatMap((result) =>
      result.status === 'rejected' ? [(result.reason as OutboundError).kind] : [],
    )
    expect(refused).toEqual(['overloaded', 'overloaded'])
    expect(most).toBe(2)
  })

  it('lets nobody wait longer than the deadline', async () => {
    const url = await sockets.tcp(() => undefined)
    const client = outbound({ maxConcurrent: 1, deadlineMs: 60, breaker: false })
    const startedAt = performance.now()
    const errors = await Promise.all(Array.from({ length: 5 }, () => failure(client.request({ method: 'GET', url }))))
    expect(errors.map((error) => error.kind)).toEqual(Array(5).fill('timeout'))
    expect(performance.now() - startedAt).toBeLessThan(1000)
  })
})
