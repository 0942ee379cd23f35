import { expect, test } from 'vitest'
import { Failure } from '../../../src/core/index.ts'
import { createHarness } from '../../support/cache/slots.ts'
import { settleMicrotasks } from '../../support/cache/world.ts'

test('a look says where a credential is, without fetching or counting', async () => {
  const { cache, calls, slot, clock, metrics } = createHarness()
  const look = () => cache.lookup(slot())
  expect(look()).toEqual({ from: 'service' })
  expect(calls).toHaveLength(0)
  const first = cache.get(slot())
  await settleMicrotasks()
  expect(look()).toEqual({ from: 'flight' })
  calls.pop()?.fail(new Failure('identity_provider_unavailable'))
  await expect(first).rejects.toMatchObject({ code: 'identity_provider_unavailable' })
  expect(look()).toEqual({ from: 'refusal' })
  clock.advance(60_000)
  expect(look()).toEqual({ from: 'service' })
  const second = cache.get(slot())
  await settleMicrotasks()
  const obtainedAtMs = clock.now()
  calls.pop()?.succeed('value', 1_000_000)
  await second
  expect(look()).toEqual({
    from: 'cache',
    obtainedAtMs,
    refreshAtMs: expect.any(Number),
    endMs: obtainedAtMs + 970_000,
  })
  expect(metrics.value('extauth_credential_requests_total', 'tokenExchange', 'hit')).toBe(0)
})
