import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { asFailure } from '../../../src/core/index.ts'
import { createCaller, createManualClock } from '../../support/ports.ts'
import { createSockets } from '../../support/sockets.ts'
import {
  type Answer,
  createRig,
  credentialsOf,
  type Grant,
  GRANTS,
  issued,
  json,
  type RigOptions,
  SHOWN_TO,
  startEndpoint,
} from '../../support/obtain/harness.ts'
import { shownIn } from '../../support/obtain/vouching.ts'

const sockets = createSockets()
let endpoint: Awaited<ReturnType<typeof startEndpoint>>

/** A token that says whose it is. */
const answerInKind: Answer = (request, response) => {
  setTimeout(() => json(issued(`for-${shownIn(request.form)}`))(request, response), 20)
}

beforeEach(async () => {
  endpoint = await startEndpoint(sockets, answerInKind)
})
afterEach(() => sockets.closeAll())

const callerOf = (index: number) => createCaller({ subject: `caller-${index}`, token: `token-${index}` })
/** Waits for calls in flight, however busy the machine is. */
const SOON = { timeout: 20_000, interval: 5 }
const range = (length: number) => Array.from({ length }, (_, index) => index)

const rigOf = (options: RigOptions = {}) => createRig(sockets, { secrets: { 'idp/secret': 's3cret' }, ...options })

/** The expected credential of a caller. */
const headerOf = (grant: Grant, index: number): string =>
  `authorization: Bearer for-${grant === 'clientCredentials' ? '' : `token-${index}`}`

describe.each(GRANTS)('%s', (grant) => {
  test('1,000 concurrent requests of one caller on a cold cache make exactly one exchange', async () => {
    const { header } = rigOf()[grant]({ tokenUrl: endpoint.url, audience: 'a' })
    const answers = await Promise.all(range(1_000).map(() => header(callerOf(1))))
    expect(new Set(answers)).toEqual(new Set([headerOf(grant, 1)]))
    expect(endpoint.received).toHaveLength(1)
  })

  test('1,000 concurrent requests of 100 callers make one exchange for each credential, and no caller gets another’s', async () => {
    const { header } = rigOf()[grant]({ tokenUrl: endpoint.url, audience: 'a' })
    const answers = await Promise.all(range(1_000).map((index) => header(callerOf(index % 100))))
    expect(answers).toEqual(range(1_000).map((index) => headerOf(grant, index % 100)))
    expect(endpoint.received).toHaveLength(credentialsOf(grant, 100))
  })

  test('when the backend revokes a token, 100 requests that held it cause one exchange between them', async () => {
    let count = 0
    const clock = createManualClock()
    endpoint.answer = (request, response) => json(issued(`issue-${(count += 1)}`))(request, response)
    const { stage, obtain, header } = rigOf({ clock })[grant]({ tokenUrl: endpoint.url, audience: 'a' })
    const caller = callerOf(1)
    const armed = await obtain(caller)
    // A shared token younger than a minute is not renewed for one caller.
    clock.advance(61_000)
    const repeated = await Promise.all(
      range(100).map(async () => ((await stage.reject(armed)) ? header(caller) : 'no repeat')),
    )
    expect(new Set(repeated)).toEqual(new Set(['authorization: Bearer issue-2']))
    expect(endpoint.received).toHaveLength(2)
  })
})

describe.each(SHOWN_TO)('%s', (grant) => {
  test('while the endpoint is down, live credentials serve, others hear when to come back, and few probes reach it', async () => {
    const clock = createManualClock()
    const rig = rigOf({ clock })
    const { header } = rig[grant]({ tokenUrl: endpoint.url, audience: 'a' })
    const live = range(20).map(callerOf)
    await Promise.all(live.map((caller) => header(caller)))
    // Past 80 %: each request of theirs would start a refresh.
    clock.advance(0.86 * 3_600_000)
    endpoint.answer = json({ error: 'down' }, 503)

    const probes: number[] = []
    for (const second of range(15)) {
      const before = endpoint.received.length
      const strangers = range(50).map((index) => callerOf(1_000 + second * 50 + index))
      const [served, refused] = await Promise.all([
        Promise.all(live.map((caller) => header(caller))),
        Promise.all(strangers.map((caller) => header(caller).catch((error: unknown) => asFailure(error)))),
      ])
      expect(served).toEqual(range(20).map((index) => `authorization: Bearer for-token-${index}`))
      for (const failure of refused) {
        expect(failure).toMatchObject({ code: 'identity_provider_unavailable', status: 503 })
        expect(failure).toHaveProperty(
          'retryAfterSeconds',
          expect.toSatisfy((wait: number) => wait >= 1 && wait <= 30),
        )
      }
      // Background work is part of this second.
      await expect.poll(() => rig.cache.list().inFlight, SOON).toBe(0)
      probes.push(endpoint.received.length - before)
      clock.advance(1_000)
    }
    // In the first second calls in flight when the circuit opened; then one probe at a time, each with its retry.
    expect(probes[0]).toBeLessThanOrEqual(2 * 70)
    expect(Math.max(...probes.slice(1))).toBeLessThanOrEqual(2)
    expect(probes.slice(1).reduce((sum, count) => sum + count, 0)).toBeGreaterThan(0)

    endpoint.answer = answerInKind
    clock.advance(31_000)
    expect(await header(callerOf(5_000))).toBe('authorization: Bearer for-token-5000')
    clock.advance(31_000)
    await Promise.all(live.map((caller) => header(caller)))
    await expect.poll(() => rig.cache.list().inFlight, SOON).toBe(0)
    clock.advance(0.14 * 3_600_000)
    const answers = await Promise.all(live.map((caller) => header(caller)))
    expect(answers).toEqual(range(20).map((index) => `authorization: Bearer for-token-${index}`))
    expect(rig.output()).not.toMatch(/token-\d/)
  }, 60_000)

  test('if too many wait for the endpoint, the next one is rejected with Retry-After', async () => {
    const { header } = rigOf({ outbound: { maxConcurrent: 1, maxQueued: 0 } })[grant]({
      tokenUrl: endpoint.url,
      audience: 'a',
    })
    const [first, second] = await Promise.allSettled([header(callerOf(1)), header(callerOf(2))])
    expect(first.status).toBe('fulfilled')
    expect(second).toMatchObject({ status: 'rejected', reason: { code: 'overloaded', retryAfterSeconds: 1 } })
  })

  test('a slow endpoint holds up no caller whose credential is there', async () => {
    const { header } = rigOf()[grant]({ tokenUrl: endpoint.url, audience: 'a' })
    await header(callerOf(1))
    endpoint.answer = () => undefined
    let ended = 0
    const waiting = range(200).map((index) =>
      header(callerOf(index + 2)).catch((error: unknown) => {
        ended += 1
        return asFailure(error).code
      }),
    )
    for (let request = 0; request < 1_000; request += 1) await header(callerOf(1))
    expect(ended).toBe(0)
    await sockets.closeAll()
    expect(new Set(await Promise.all(waiting))).toEqual(new Set(['identity_provider_unavailable']))
  })
})
