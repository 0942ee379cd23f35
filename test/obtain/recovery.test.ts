import { afterEach, expect, test } from 'vitest'
import { asFailure } from '../../src/core/index.ts'
import { createCaller, createManualClock } from '../support/ports.ts'
import { createSockets } from '../support/sockets.ts'
import { createRig, issued, json, startEndpoint, type Answer } from './harness.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const range = (length: number) => Array.from({ length }, (_, index) => index)
const callerOf = (index: number) => createCaller({ subject: `caller-${index}`, token: `token-${index}` })

const OUTAGES: Readonly<Record<string, Answer>> = {
  'answers 500': json({ error: 'down' }, 500),
  'asks for rest': json({ error: 'down' }, 503, { 'retry-after': '2' }),
  'hangs up': (_request, response) => void response.socket?.destroy(),
}

test.each(Object.entries(OUTAGES))(
  'two seconds after an endpoint that %s is well, everybody is served',
  async (_what, down) => {
    const clock = createManualClock()
    const endpoint = await startEndpoint(sockets, down)
    const { header } = createRig(sockets, { clock }).exchange({ tokenUrl: endpoint.url, audience: 'a' })
    const callers = range(100).map(callerOf)
    const ask = () =>
      Promise.all(callers.map((caller) => header(caller).catch((error: unknown) => asFailure(error).code)))

    for (let second = 0; second < 20; second += 1) {
      expect(new Set(await ask())).toEqual(new Set(['identity_provider_unavailable']))
      clock.advance(1_000)
    }
    const { length: asked } = endpoint.received
    // A hundred callers, of whom each is asked for once or twice before the circuit opens, then a probe a second.
    expect(asked).toBeLessThan(2 * (100 + 20))

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
    expect(endpoint.received.length - asked).toBe(100)
    expect(most).toBeLessThanOrEqual(64)
  },
  30_000,
)

test('where it never opened, because too few were concerned, nobody waits longer than the last answer asked for', async () => {
  const clock = createManualClock()
  const endpoint = await startEndpoint(sockets, json({ error: 'down' }, 500))
  const { header } = createRig(sockets, { clock }).exchange({ tokenUrl: endpoint.url, audience: 'a' })
  const ask = () => header(callerOf(1)).catch((error: unknown) => asFailure(error).retryAfterSeconds)
  for (let second = 0; second < 60; second += 1) {
    expect(await ask()).toBeLessThanOrEqual(5)
    clock.advance(1_000)
  }
  endpoint.answer = json(issued('token'))
  clock.advance(5_000)
  expect(await ask()).toBe('authorization: Bearer token')
})
