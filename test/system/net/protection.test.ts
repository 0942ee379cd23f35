import { afterEach, describe, expect, it } from 'vitest'
import { type Metrics, monotonic, OutboundError } from '../../../src/core/index.ts'
import { createOutbound, type OutboundOptions } from '../../../src/net/index.ts'
import { createSockets } from '../../support/sockets.ts'

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
  it('opens, refuses with a time to come back, lets one probe through and closes, as the gauge says', async () => {
    let now = 1_000_000
    let requests = 0
    let status = 500
    const url = await sockets.http((_request, response) => {
      requests++
      setTimeout(() => response.writeHead(status).end(), 20)
    })
    const states: string[] = []
    const client = outbound({ monotonicClock: { now: () => monotonic(now) }, metrics: gaugeMetrics(states) })
    const get = () => client.request({ method: 'GET', url })
    await Promise.all(Array.from({ length: 20 }, get))
    const refused = await failure(get())
    expect([refused.kind, refused.retryAfterSeconds, requests]).toEqual(['breaker_open', 1, 20])

    now += 1001
    const probes = await Promise.allSettled([get(), get(), get()])
    expect(probes.map((probe) => probe.status)).toEqual(['fulfilled', 'rejected', 'rejected'])
    expect(requests).toBe(21)
    now += 1001
    status = 200
    expect((await get()).status).toBe(200)
    expect((await Promise.all([get(), get(), get()])).map((answer) => answer.status)).toEqual([200, 200, 200])
    expect(states).toEqual([0, 1, 2, 1, 2, 0].map((state) => `extauth_breaker_state{name=idp} ${state}`))
  })

  it('and rests end by the time that passed, wherever the wall clock jumps', async () => {
    let [wall, steady] = [1_800_000_000_000, 0]
    let answer: { status: number; headers: Record<string, string> } = { status: 500, headers: {} }
    const url = await sockets.http((_request, response) => response.writeHead(answer.status, answer.headers).end())
    for (const trouble of [
      { status: 500, headers: {} },
      { status: 429, headers: { 'retry-after': '1' } },
      { status: 429, headers: { 'retry-after': new Date(wall + 1_000).toUTCString() } },
    ]) {
      const client = outbound({ clock: { now: () => wall }, monotonicClock: { now: () => monotonic(steady) } })
      const get = () => client.request({ method: 'GET', url })
      answer = trouble
      await Promise.all(Array.from({ length: 20 }, get))
      wall += 3_600_000
      expect((await failure(get())).kind).toBe('breaker_open')
      wall -= 2 * 3_600_000
      steady += 1_001
      answer = { status: 200, headers: {} }
      expect((await get()).status).toBe(200)
      wall = 1_800_000_000_000
    }
  })

  it.each([400, 401, 403, 404, 429])('is not opened by %i', async (status) => {
    const url = await sockets.http((_request, response) => response.writeHead(status).end())
    const client = outbound()
    for (let i = 0; i < 24; i++) expect((await client.request({ method: 'GET', url })).status).toBe(status)
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

  it('bounds every wait by the deadline', async () => {
    const url = await sockets.tcp(() => undefined)
    const client = outbound({ maxConcurrent: 1, deadlineMs: 60, breaker: false })
    const startedAt = performance.now()
    const errors = await Promise.all(Array.from({ length: 5 }, () => failure(client.request({ method: 'GET', url }))))
    const kinds = errors.map((error) => error.kind)
    expect(kinds[0]).toBe('timeout')
    expect(kinds.filter((kind) => kind === 'overloaded').length).toBeGreaterThanOrEqual(1)
    expect(performance.now() - startedAt).toBeLessThan(5_000)
  })
})

/** A service that treats each token as it begins, and a client that asks about tokens. */
const tried = async (deadlineMs = 400) => {
  let nowMs = 1_000_000
  const seen: string[] = []
  const url = await sockets.http((request, response) => {
    const token = request.url?.slice(1) ?? ''
    seen.push(token)
    if (token.startsWith('broken')) response.writeHead(500).end()
    else if (/^(?:429|503)$/.test(token)) response.writeHead(Number(token), { 'retry-after': '20' }).end()
    else if (!token.startsWith('hanging')) response.end()
  })
  const client = outbound({ clock: { now: () => nowMs }, monotonicClock: { now: () => monotonic(nowMs) }, deadlineMs })
  /** `caller` undefined: the proxy's own client. */
  const ask = async (caller: string | undefined, token: string, isUnauthenticated = false): Promise<string> => {
    try {
      const by = caller === undefined ? {} : { onBehalfOf: { caller, token, isUnauthenticated } }
      return String((await client.request({ method: 'GET', url: `${url}/${token}`, ...by })).status)
    } catch (error) {
      return error instanceof OutboundError ? error.kind : 'a bug'
    }
  }
  return { seen, ask, advance: (ms: number) => (nowMs += ms) }
}

describe('callers of one service', () => {
  it('have their own circuit: only a caller with failing tokens is blocked', async () => {
    const { ask } = await tried()
    for (let count = 0; count < 30; count++) await ask('mallory', `broken-${count}`)
    expect(await ask('mallory', 'broken-new')).toBe('breaker_open')
    expect(await ask('alice', 'good')).toBe('200')
  })

  it('are all kept away when five of them have it', async () => {
    const { ask } = await tried()
    for (let count = 0; count < 20; count++) await ask(`caller-${count % 5}`, `broken-${count}`)
    expect(await ask('alice', 'good')).toBe('breaker_open')
  })

  it('hear nothing new of a token that got a 5xx for five seconds, or until the service is well again', async () => {
    const { ask, seen, advance } = await tried()
    expect(await ask('mallory', 'broken')).toBe('500')
    expect([await ask('mallory', 'broken'), await ask('another', 'broken')]).toEqual(['breaker_open', 'breaker_open'])
    advance(4999)
    expect(await ask('mallory', 'broken')).toBe('breaker_open')
    advance(1)
    expect(await ask('mallory', 'broken')).toBe('500')
    expect(seen).toEqual(['broken', 'broken'])
  })

  it('lend each other slots, and keep their share: hanging calls of one delay no other', async () => {
    const { ask, seen } = await tried(2_000)
    const hanging = Array.from({ length: 80 }, (_, index) => ask('mallory', `hanging-${index}`))
    const others = await Promise.all(Array.from({ length: 40 }, (_, index) => ask(`caller-${index}`, `good-${index}`)))
    expect(new Set(others)).toEqual(new Set(['200']))
    expect(seen.filter((token) => token.startsWith('hanging'))).toHaveLength(64)
    await Promise.all(hanging)
    expect(await ask('alice', 'good')).toBe('200')
  })

  it('rest alone when they are throttled, for as long as the service asks', async () => {
    const { ask, seen, advance } = await tried()
    const throttled = ['mallory', 'bob', 'carol', 'dave']
    for (const caller of throttled) expect(await ask(caller, '429')).toBe('429')
    for (const caller of throttled) expect(await ask(caller, 'good')).toBe('breaker_open')
    for (let count = 0; count < 20; count++) expect(await ask('alice', 'good')).toBe('200')
    advance(19_999)
    expect(await ask('mallory', 'good')).toBe('breaker_open')
    expect(seen).toHaveLength(24)
    advance(1)
    expect(await ask('mallory', 'good')).toBe('200')
  })

  it('are no reason to keep away others of an address from which a stranger was throttled', async () => {
    const { ask } = await tried()
    for (let count = 0; count < 3; count++) expect(await ask('192.0.2.1', '429', true)).toBe('429')
    expect(await ask('192.0.2.1', 'good', true)).toBe('200')
  })

  it.each([
    ['nine answers', 9, 5, 0, '200'],
    ['four callers', 12, 4, 0, '200'],
    ['fewer than half', 10, 5, 11, '200'],
    ['half of the answers', 10, 5, 10, 'breaker_open'],
    ['ten answers to five callers', 10, 5, 0, 'breaker_open'],
  ])('all rest when half of ten answers throttle five callers: %s', async (_what, answers, callers, good, expected) => {
    const { ask, advance } = await tried()
    for (let count = 0; count < good; count++) expect(await ask(`good-${count}`, 'good')).toBe('200')
    for (let count = 0; count < answers; count++) {
      // A stranger has no rest of its own.
      expect(await ask(`caller-${count % callers}`, '429', true)).toBe('429')
    }
    expect(await ask('alice', 'good')).toBe(expected)
    advance(20_000)
    expect(await ask('alice', 'good')).toBe('200')
  })

  it.each(['503'])('cool down for as long as the service asks, once a second one was rejected: %s', async (token) => {
    const { ask, advance } = await tried()
    for (let count = 0; count < 2; count++) {
      expect(await ask('mallory', token)).toBe(token)
      expect(await ask('alice', 'good')).toBe('200')
      advance(5000)
    }
    expect(await ask('bob', token)).toBe(token)
    expect(await ask('alice', 'good')).toBe('breaker_open')
    advance(19_999)
    expect(await ask('alice', 'good')).toBe('breaker_open')
    advance(1)
    expect(await ask('alice', 'good')).toBe('200')
  })
})

describe('the own client of the proxy', () => {
  it.each(['429', '503'])('rests alone when it is answered %s with Retry-After', async (token) => {
    const { ask, seen, advance } = await tried()
    expect(await ask(undefined, token)).toBe(token)
    expect(await ask(undefined, 'good')).toBe('breaker_open')
    for (let count = 0; count < 20; count++) expect(await ask(`caller-${count}`, 'good')).toBe('200')
    advance(19_999)
    expect(await ask(undefined, 'good')).toBe('breaker_open')
    expect(seen).toHaveLength(21)
    advance(1)
    expect(await ask(undefined, 'good')).toBe('200')
  })

  it('is no second caller beside the one that brought it about', async () => {
    const { ask, advance } = await tried()
    for (let count = 0; count < 3; count++) {
      expect(await ask(undefined, '503')).toBe('503')
      expect(await ask('mallory', '503')).toBe('503')
      expect(await ask('alice', 'good')).toBe('200')
      advance(25_000)
    }
  })

  it('counts as one of the callers that are throttled', async () => {
    const { ask } = await tried()
    for (const caller of ['a', 'b', 'c', 'd']) for (let count = 0; count < 3; count++) await ask(caller, '429', true)
    expect(await ask(undefined, '429')).toBe('429')
    expect(await ask('alice', 'good')).toBe('breaker_open')
  })
})

describe('strangers behind one peer', () => {
  it('have no circuit of their own, since many may stand there', async () => {
    const { ask, seen } = await tried()
    for (let count = 0; count < 40; count++) await ask('balancer', `broken-${count}`, true)
    expect(seen).toHaveLength(40)
    expect(await ask('balancer', 'good', true)).toBe('200')
  })
})
