import { afterAll, describe, expect, test } from 'vitest'
import { asFailure } from '../../../src/core/index.ts'
import { createCaller, createManualClock } from '../../support/ports.ts'
import { createSockets } from '../../support/sockets.ts'
import {
  type Answer,
  createRig,
  credentialsOf,
  GRANTS,
  issued,
  json,
  type RigOptions,
  SHOWN_TO,
  startEndpoint,
} from '../../support/obtain/harness.ts'

const sockets = createSockets()
afterAll(() => sockets.closeAll())

const range = (length: number) => Array.from({ length }, (_, index) => index)
const callerOf = (index: number) => createCaller({ subject: `caller-${index}`, token: `token-${index}` })

/** Each takes the pause before a second try, which is a real one: so all outages are at the same time. */
const OUTAGE_SECONDS = 6

const OUTAGES: Readonly<Record<string, Answer>> = {
  'answers 500': json({ error: 'down' }, 500),
  'asks for rest': json({ error: 'down' }, 503, { 'retry-after': '2' }),
  'hangs up': (_request, response) => void response.socket?.destroy(),
}

const rigOf = (options: RigOptions = {}) => createRig(sockets, { secrets: { 'idp/secret': 's3cret' }, ...options })

describe.concurrent.each([...GRANTS, 'assertion'] as const)('%s', (grant) => {
  const credentials = credentialsOf(grant, 100)

  test.each(Object.entries(OUTAGES))(
    'two seconds after an endpoint that %s recovers, all callers are served',
    async (_what, down) => {
      const clock = createManualClock()
      const endpoint = await startEndpoint(sockets, down)
      const { header } = rigOf({ clock })[grant]({ tokenUrl: endpoint.url, audience: 'a' })
      const callers = range(100).map(callerOf)
      const ask = () =>
        Promise.all(callers.map((caller) => header(caller).catch((error: unknown) => asFailure(error).code)))

      for (let second = 0; second < OUTAGE_SECONDS; second += 1) {
        expect(new Set(await ask())).toEqual(new Set(['identity_provider_unavailable']))
        clock.advance(1_000)
      }
      const { length: asked } = endpoint.received
      // Each is asked for once or twice before the circuit opens, then a probe a second.
      expect(asked).toBeLessThan(2 * (credentials + OUTAGE_SECONDS))

      let running = 0
      let most = 0
      endpoint.answer = (request, response) => {
        most = Math.max(most, (running += 1))
        setTimeout(() => {
          running -= 1
          json(issued('token'))(request, response)
        }, 20)
      }
      await ask()
      clock.advance(1_000)
      await ask()
      clock.advance(1_000)
      expect(new Set(await ask())).toEqual(new Set(['authorization: Bearer token']))
      expect(endpoint.received.length - asked).toBe(credentials)
      expect(most).toBeLessThanOrEqual(64)
    },
    30_000,
  )

  test('without an open circuit, because of too few callers, no caller waits longer than the last Retry-After', async () => {
    const clock = createManualClock()
    const endpoint = await startEndpoint(sockets, json({ error: 'down' }, 500))
    const { header } = rigOf({ clock })[grant]({ tokenUrl: endpoint.url, audience: 'a' })
    const ask = () => header(callerOf(1)).catch((error: unknown) => asFailure(error).retryAfterSeconds)
    for (let second = 0; second < 15; second += 1) {
      expect(await ask()).toBeLessThanOrEqual(5)
      clock.advance(1_000)
    }
    endpoint.answer = json(issued('token'))
    clock.advance(5_000)
    expect(await ask()).toBe('authorization: Bearer token')
  })
})

describe.each(SHOWN_TO)('%s', (grant) => {
  test('after a hung endpoint recovers, no caller waits for an earlier call', async () => {
    const clock = createManualClock()
    const hangs: Answer = () => undefined
    const endpoint = await startEndpoint(sockets, hangs)
    const rig = rigOf({ clock, outbound: { deadlineMs: 2_500 } })
    const { header } = rig[grant]({ tokenUrl: endpoint.url, audience: 'a' })
    const ask = (index: number) => header(callerOf(index)).catch((error: unknown) => asFailure(error).code)

    const first = range(5).map(ask)
    await expect.poll(() => endpoint.received.length).toBe(5)
    await new Promise((resolve) => setTimeout(resolve, 1_200))
    const waiting = range(20).map((index) => ask(10 + index))
    await expect.poll(() => endpoint.received.length).toBe(25)
    expect(new Set(await Promise.all(first))).toEqual(new Set(['identity_provider_unavailable']))
    expect(await ask(99)).toBe('identity_provider_unavailable')

    endpoint.answer = json(issued('token'))
    clock.advance(1_000)
    expect(await ask(100)).toBe('authorization: Bearer token')
    const joined = range(20).map((index) => ask(10 + index))
    const served = await Promise.all([...waiting, ...joined])
    expect(new Set(served)).toEqual(new Set(['authorization: Bearer token']))
    // Each hung call was sent once more for all waiting callers; its later end opens no circuit.
    expect(endpoint.received).toHaveLength(25 + 1 + 20)
    await new Promise((resolve) => setTimeout(resolve, 1_500))
    expect(await ask(101)).toBe('authorization: Bearer token')
  })
})
