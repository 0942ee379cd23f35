import { expect, test } from 'vitest'
import { createHarness } from '../../support/cache/slots.ts'

test('for a second after a credential replaced a refused one, fetching again is no help', async () => {
  const { cache, clock, slot, fill } = createHarness()
  await fill({}, 'first')
  expect(cache.isFreshAfterRejection(slot())).toBe(false)
  expect(cache.reject(slot(), 'first')).toBe(true)
  await fill({}, 'second')
  expect([cache.isFreshAfterRejection(slot()), cache.reject(slot(), 'second')]).toEqual([true, false])
  expect(cache.isFreshAfterRejection(slot({ subject: 'bob' }))).toBe(false)
  clock.advance(1_000)
  expect([cache.isFreshAfterRejection(slot()), cache.reject(slot(), 'second')]).toEqual([false, true])
})

test('a clock that is set back does not make that second longer', async () => {
  const { cache, clock, slot, fill } = createHarness()
  await fill({}, 'first')
  expect(cache.reject(slot(), 'first')).toBe(true)
  clock.advance(-3_600_000)
  await fill({}, 'second')
  expect([cache.isFreshAfterRejection(slot()), cache.reject(slot(), 'second')]).toEqual([false, true])
})
