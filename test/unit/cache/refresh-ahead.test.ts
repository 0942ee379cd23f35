import { expect, test } from 'vitest'
import { Failure } from '../../../src/core/index.ts'
import { createHarness } from '../../support/cache/slots.ts'
import { settleMicrotasks } from '../../support/cache/world.ts'

const HOUR_MS = 3_600_000

test('past 80 % a request gets the old one at once and starts one refresh', async () => {
  const { cache, clock, calls, slot, fill, metrics } = createHarness()
  await fill({}, 'old', HOUR_MS)
  clock.advance(0.8 * HOUR_MS - 1)
  expect(cache.get(slot())).toBe('old')
  await settleMicrotasks()
  expect(calls).toHaveLength(0)
  clock.advance(1)
  expect([cache.get(slot()), cache.get(slot()), cache.get(slot())]).toEqual(['old', 'old', 'old'])
  await settleMicrotasks()
  expect(calls).toHaveLength(1)
  calls.pop()?.succeed('new', HOUR_MS)
  await settleMicrotasks()
  expect(cache.get(slot())).toBe('new')
  expect(metrics.value('extauth_credential_fetches_total', 'tokenExchange', 'refresh', 'ok')).toBe(1)
})

test('a failed refresh serves the old one until its hard end and not a moment longer', async () => {
  const { cache, clock, calls, slot, fill } = createHarness()
  await fill({}, 'old', HOUR_MS)
  clock.advance(0.9 * HOUR_MS)
  expect(cache.get(slot())).toBe('old')
  await settleMicrotasks()
  calls.pop()?.fail(new Failure('identity_provider_unavailable'))
  await settleMicrotasks()
  clock.advance(0.1 * HOUR_MS - 30_000 - 1)
  expect(cache.get(slot())).toBe('old')
  await settleMicrotasks()
  calls.pop()?.fail(new Failure('identity_provider_unavailable'))
  await settleMicrotasks()
  clock.advance(1)
  expect(() => cache.get(slot())).toThrow(expect.objectContaining({ code: 'identity_provider_unavailable' }))
})

test.each([
  ['identity_provider_unavailable', 1_000],
  ['exchange_denied', 10_000],
  ['expired_token', 10_000],
] as const)('after a refresh failed with %s the next one waits %d ms', async (code, pause) => {
  const { cache, clock, calls, slot, fill } = createHarness()
  await fill({}, 'old', HOUR_MS)
  clock.advance(0.81 * HOUR_MS)
  void cache.get(slot())
  await settleMicrotasks()
  calls.pop()?.fail(new Failure(code))
  await settleMicrotasks()
  clock.advance(pause - 1)
  expect(cache.get(slot())).toBe('old')
  await settleMicrotasks()
  expect(calls).toHaveLength(0)
  clock.advance(1)
  expect(cache.get(slot())).toBe('old')
  await settleMicrotasks()
  expect(calls).toHaveLength(1)
})

test('a request after the expiry waits for the refresh in flight', async () => {
  const { cache, clock, calls, slot, fill } = createHarness()
  await fill({}, 'old', HOUR_MS)
  clock.advance(0.9 * HOUR_MS)
  void cache.get(slot())
  await settleMicrotasks()
  clock.advance(0.1 * HOUR_MS)
  const answer = cache.get(slot())
  await settleMicrotasks()
  expect(calls).toHaveLength(1)
  calls.pop()?.succeed('new', HOUR_MS)
  expect(await answer).toBe('new')
})
