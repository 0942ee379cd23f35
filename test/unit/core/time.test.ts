import { expect, expectTypeOf, it } from 'vitest'
import {
  after,
  type Clock,
  type EpochMs,
  monotonic,
  type MonotonicClock,
  type MonotonicMs,
} from '../../../src/core/index.ts'

it('a time of one clock is not accepted as a time of the other', () => {
  expectTypeOf<number>().not.toExtend<MonotonicMs>()
  expectTypeOf<EpochMs>().not.toExtend<MonotonicMs>()
  expectTypeOf<MonotonicMs>().not.toExtend<EpochMs>()
  expectTypeOf<Clock>().not.toExtend<MonotonicClock>()
  expectTypeOf<MonotonicClock>().not.toExtend<Clock>()
  expectTypeOf<number>().toExtend<EpochMs>()
  expectTypeOf(after(monotonic(1), 2)).toEqualTypeOf<MonotonicMs>()
  expect(after(monotonic(1), 2)).toBe(3)
})
