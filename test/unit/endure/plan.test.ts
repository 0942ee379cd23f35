import { describe, expect, it } from 'vitest'
import { FAULTS } from '../../../endure/faults/list.ts'
import { plan } from '../../../endure/faults/schedule.ts'
import { createRandom } from '../../../endure/random.ts'

const HOUR_MS = 3_600_000
const shape = { runMs: HOUR_MS, everyMs: 20_000 }
const planOf = (seed: string) =>
  plan(FAULTS, createRandom(seed), shape).map(({ fault, atMs, lastsMs }) => [fault.name, atMs, lastsMs])

describe('the plan of a run', () => {
  it('is the same for the same seed and another for another', () => {
    expect(planOf('1')).toEqual(planOf('1'))
    expect(planOf('1')).not.toEqual(planOf('2'))
  })

  it('has every fault before one comes again, none beyond the next, and quiet at both ends', () => {
    const planned = plan(FAULTS, createRandom('1'), shape)
    const first = planned.slice(0, FAULTS.length).map(({ fault }) => fault.name)
    expect(new Set(first).size).toBe(FAULTS.length)
    for (const [index, { atMs, lastsMs }] of planned.entries())
      expect(atMs + lastsMs).toBeLessThanOrEqual(planned[index + 1]?.atMs ?? HOUR_MS - 1_000)
    expect(planned[0]?.atMs).toBeGreaterThan(5_000)
  })

  it('draws numbers that depend on the seed and the name alone', () => {
    const random = createRandom('7')
    const before = random.of('callers').next()
    random.next()
    expect(random.of('callers').next()).toBe(before)
    expect(random.of('faults').next()).not.toBe(before)
    const drawn = Array.from({ length: 2_000 }, () => random.between(1, 6))
    expect(new Set(drawn)).toEqual(new Set([1, 2, 3, 4, 5, 6]))
    expect(new Set(random.shuffled([1, 2, 3, 4]))).toEqual(new Set([1, 2, 3, 4]))
  })
})
