import { expect, test } from 'vitest'
import { Failure, type FailureCode } from '../../../src/core/index.ts'
import { hardEndMs, pauseMs, refreshAtMs } from '../../../src/cache/lifetimes.ts'
import { createHarness } from '../../support/cache/slots.ts'
import { settleMicrotasks } from '../../support/cache/world.ts'

test.each([
  [3_600_000, 3_570_000],
  [300_000, 270_000],
  [60_000, 54_000],
  [1_000, 900],
])('a credential of %d ms is given out for %d ms', (lifetime, served) => {
  expect(hardEndMs(5_000 + lifetime, 5_000)).toBe(5_000 + served)
})

test('a refresh is due at 80 % ± 5 %, always before the hard end', () => {
  expect(refreshAtMs(100_000, 0, 0)).toBeCloseTo(75_000)
  expect(refreshAtMs(100_000, 0, 0.5)).toBeCloseTo(80_000)
  expect(refreshAtMs(100_000, 0, 0.999_999)).toBeCloseTo(85_000, -1)
  for (const lifetime of [1, 10, 1_000, 1e9]) {
    expect(refreshAtMs(lifetime, 0, 0.999_999)).toBeLessThan(hardEndMs(lifetime, 0))
  }
})

test.each<[FailureCode, number | undefined, number, number | undefined]>([
  ['exchange_denied', undefined, 1, 10_000],
  ['role_denied', undefined, 7, 10_000],
  ['config_error', undefined, 1, 10_000],
  ['secret_unavailable', undefined, 1, undefined],
  ['expired_token', undefined, 1, undefined],
  ['invalid_token', undefined, 1, undefined],
  ['internal_error', undefined, 1, undefined],
  ['identity_provider_unavailable', undefined, 1, 1_000],
  ['identity_provider_unavailable', undefined, 2, 2_000],
  ['identity_provider_unavailable', undefined, 60, 2_000],
  ['identity_provider_unavailable', 5, 60, 5_000],
  ['identity_provider_unavailable', 900, 1, 30_000],
  ['sts_throttled', undefined, 60, 30_000],
  ['sts_throttled', 7, 1, 7_000],
  ['sts_throttled', 7, 5, 16_000],
  ['sts_throttled', 120, 1, 30_000],
  ['overloaded', undefined, 1, 1_000],
])('%s (Retry-After %s, failure %d in a row) pauses for %s ms', (code, retryAfterSeconds, inARow, expected) => {
  expect(pauseMs(new Failure(code, retryAfterSeconds === undefined ? {} : { retryAfterSeconds }), inARow)).toBe(
    expected,
  )
})

test.each<[FailureCode, number | undefined]>([
  ['invalid_token', 10_000],
  ['exchange_denied', 10_000],
  ['expired_token', undefined],
  ['no_session', undefined],
])('%s of a token that the key stands for pauses for %s ms', (code, expected) => {
  expect(pauseMs(new Failure(code), 1, true)).toBe(expected)
})

test('nothing outlives the token it was obtained for', async () => {
  const { cache, clock, slot, fill } = createHarness()
  const notAfterMs = clock.now() + 60_000
  await fill({ notAfterMs }, 'credential', 3_600_000)
  clock.advance(53_999)
  expect(cache.get(slot({ notAfterMs }))).toBe('credential')
  clock.advance(1)
  expect(cache.get(slot({ notAfterMs }))).toBeInstanceOf(Promise)
})

test('a token that has ended is not exchanged at all', () => {
  const { cache, clock, slot, calls } = createHarness()
  expect(() => cache.get(slot({ notAfterMs: clock.now() }))).toThrow(expect.objectContaining({ code: 'expired_token' }))
  expect(calls).toHaveLength(0)
})

test.each([
  [0, undefined, 'identity_provider_error'],
  [-5_000, undefined, 'identity_provider_error'],
  [Number.NaN, undefined, 'identity_provider_error'],
  [60_000, 1_000, 'expired_token'],
])(
  'a credential that has expired on arrival is not returned (lifetime %d, token %s)',
  async (lifetime, leftMs, code) => {
    const { cache, clock, slot, calls } = createHarness()
    const wanted = slot(leftMs === undefined ? {} : { notAfterMs: clock.now() + leftMs })
    const answer = cache.get(wanted)
    await settleMicrotasks()
    clock.advance(2_000)
    calls[0]?.succeed('dead', lifetime)
    await expect(answer).rejects.toMatchObject({ code })
  },
)
