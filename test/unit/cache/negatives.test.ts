import { expect, test } from 'vitest'
import { Failure, type FailureOptions, type FailureCode, OutboundError } from '../../../src/core/index.ts'
import { createHarness } from '../../support/cache/slots.ts'
import { settleMicrotasks } from '../../support/cache/world.ts'

function createFailing() {
  const harness = createHarness()
  const { cache, calls, slot } = harness
  return {
    ...harness,
    /** Asks, and lets the call fail if one was made; gives what the request got and how many calls that took. */
    ask: async (code: FailureCode, options: FailureOptions = {}) => {
      let error: unknown
      let answer: unknown
      try {
        answer = cache.get(slot())
      } catch (thrown) {
        error = thrown
      }
      await settleMicrotasks()
      const made = calls.length
      calls.pop()?.fail(new Failure(code, options))
      if (answer instanceof Promise) error = await answer.catch((thrown: unknown) => thrown)
      return { made, error }
    },
  }
}

test('an unavailable service is tried after 1 s, then every 2 s, and requests in between get Retry-After', async () => {
  const { ask, clock, metrics } = createFailing()
  for (const pause of [1, 2, 2, 2, 2, 2, 2]) {
    expect((await ask('identity_provider_unavailable')).made).toBe(1)
    const { made, error } = await ask('identity_provider_unavailable')
    expect(made).toBe(0)
    expect(error).toMatchObject({ code: 'identity_provider_unavailable', retryAfterSeconds: pause })
    clock.advance(pause * 1_000 - 1)
    expect((await ask('identity_provider_unavailable')).made).toBe(0)
    clock.advance(1)
  }
  expect(metrics.value('extauth_credential_requests_total', 'tokenExchange', 'negative')).toBe(14)
})

test('a service that throttles is asked after 1, 2, 4 … 30 s', async () => {
  const { ask, clock } = createFailing()
  for (const pause of [1, 2, 4, 8, 16, 30, 30]) {
    expect((await ask('sts_throttled')).made).toBe(1)
    clock.advance(pause * 1_000 - 1)
    expect((await ask('sts_throttled')).made).toBe(0)
    clock.advance(1)
  }
})

test('a refusal by an open circuit is no failure in a row', async () => {
  const { ask, clock } = createFailing()
  for (let count = 0; count < 5; count += 1) {
    expect((await ask('sts_throttled', { cause: new OutboundError('breaker_open') })).made).toBe(1)
    clock.advance(1_000)
  }
  await ask('sts_throttled')
  clock.advance(1_999)
  expect((await ask('sts_throttled')).made).toBe(0)
  clock.advance(1)
  expect((await ask('sts_throttled')).made).toBe(1)
})

test('when the service of a config is well again, the pauses that it caused end within a second, spread', async () => {
  const { cache, calls, clock, slot } = createHarness()
  const kinds = { away: 'identity_provider_unavailable', full: 'overloaded', denied: 'exchange_denied' } as const
  const fail = async (subject: string, config: string, code: FailureCode) => {
    const answer = cache.get(slot({ subject, config })) as Promise<string>
    await settleMicrotasks()
    calls.pop()?.fail(new Failure(code, { retryAfterSeconds: 30 }))
    await expect(answer).rejects.toMatchObject({ code })
  }
  for (const [subject, code] of Object.entries(kinds)) {
    await fail(subject, 'ns/well', code)
    await fail(subject, 'ns/other', code)
  }
  const asks = (subject: string, config: string): boolean => {
    try {
      void cache.get(slot({ subject, config }))
      return true
    } catch {
      return false
    }
  }
  cache.endPauses('ns/well')
  // The harness' random number is 0.5.
  clock.advance(499)
  expect(['away', 'full', 'denied'].map((subject) => asks(subject, 'ns/well'))).toEqual([false, false, false])
  clock.advance(1)
  expect(['away', 'full', 'denied'].map((subject) => asks(subject, 'ns/well'))).toEqual([true, true, false])
  expect(['away', 'full', 'denied'].map((subject) => asks(subject, 'ns/other'))).toEqual([false, false, false])
})

test('what the service asks for is honoured, up to 30 s', async () => {
  const { ask, clock } = createFailing()
  await ask('sts_throttled', { retryAfterSeconds: 12 })
  clock.advance(11_999)
  expect(await ask('sts_throttled')).toMatchObject({ made: 0, error: { retryAfterSeconds: 1 } })
  clock.advance(1)
  expect((await ask('sts_throttled', { retryAfterSeconds: 900 })).made).toBe(1)
  clock.advance(30_000)
  expect((await ask('sts_throttled')).made).toBe(1)
})

test('a rejection is cached for 10 s with its reason, without Retry-After', async () => {
  const { ask, clock } = createFailing()
  const first = await ask('exchange_denied', { detail: 'access_denied' })
  const second = await ask('exchange_denied')
  expect(second).toMatchObject({ made: 0, error: { code: 'exchange_denied', detail: 'access_denied' } })
  expect(second.error).not.toBe(first.error)
  expect((second.error as Failure).retryAfterSeconds).toBeUndefined()
  clock.advance(10_000)
  expect((await ask('exchange_denied')).made).toBe(1)
})

test('a pause does not last longer because the clock of the machine was set back', async () => {
  const { ask, clock } = createFailing()
  await ask('identity_provider_unavailable')
  expect((await ask('identity_provider_unavailable')).made).toBe(0)
  clock.advance(-3_600_000)
  expect((await ask('identity_provider_unavailable')).made).toBe(1)
})

test.each(['expired_token', 'invalid_token', 'no_session', 'secret_unavailable', 'internal_error'] as const)(
  '%s is never cached: the next request may have what was missing',
  async (code) => {
    const { ask } = createFailing()
    expect((await ask(code)).made).toBe(1)
    expect((await ask(code)).made).toBe(1)
  },
)

test('a success ends the row of failures', async () => {
  const { ask, clock, fill } = createFailing()
  await ask('sts_unavailable')
  clock.advance(1_000)
  await ask('sts_unavailable')
  clock.advance(2_000)
  await fill({}, 'credential', 1_000)
  clock.advance(1_000)
  await ask('sts_unavailable')
  clock.advance(1_000)
  expect((await ask('sts_unavailable')).made).toBe(1)
})

test('a flood of failing callers evicts no good credential', async () => {
  const { cache, calls, fill, slot } = createHarness({ maxEntries: 50 })
  await fill({}, 'good')
  for (let caller = 0; caller < 200; caller += 1) {
    const answer = cache.get(slot({ subject: `stranger-${caller}` })) as Promise<string>
    await settleMicrotasks()
    calls.pop()?.fail(new Failure('exchange_denied'))
    await expect(answer).rejects.toMatchObject({ code: 'exchange_denied' })
  }
  expect(cache.get(slot())).toBe('good')
  expect(cache.list()).toMatchObject({ entries: 1, negative: 50 })
})

test('failures with long challenges are bounded by bytes, and the latest rejection stays cached', async () => {
  const maxBytes = 1024 * 1024
  const { cache, calls, slot } = createHarness({ maxBytes })
  const stepUp = { authorizationUri: 'https://login.example/authorize', claims: 'x'.repeat(5_000) }
  const refuse = async (subject: string): Promise<unknown> => {
    const answer = cache.get(slot({ subject }))
    await Promise.resolve()
    calls
      .pop()
      ?.fail(
        new Failure('interaction_required', { refusedForMs: 600_000, challenge: { error: 'invalid_token', stepUp } }),
      )
    return Promise.resolve(answer).catch((error: unknown) => error)
  }
  for (let index = 0; index < 500; index++) await refuse(`user-${index}`)
  const { negative } = cache.list()
  expect(negative).toBeGreaterThan(20)
  expect(negative * 5_000).toBeLessThan(maxBytes / 2)
  expect(cache.lookup(slot({ subject: 'user-499' })).from).toBe('refusal')
  expect(cache.lookup(slot({ subject: 'user-0' })).from).toBe('service')
})
