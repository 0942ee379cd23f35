import { describe, expect, it } from 'vitest'
import { growthOf, medianSlope } from '../../../endure/growth/judge.ts'
import type { Sample } from '../../../endure/growth/sample.ts'

const HOUR = 3_600

/** A look each 30 s of an hour at a process whose memory is what `memory` says. */
const samplesOf = (memory: (atSeconds: number) => number, from = 0, to = HOUR): readonly Sample[] =>
  Array.from({ length: (to - from) / 30 }, (_, index) => ({
    atSeconds: from + index * 30,
    of: 'replica-1.1',
    values: { memory: memory(from + index * 30) },
  }))

const keptOf = (samples: readonly Sample[]): unknown =>
  growthOf(samples, HOUR).map(({ bound, isKept }) => [bound !== undefined, isKept])

describe('growth', () => {
  it('is reported if memory grows by more than its bound in the evaluated part', () => {
    expect(keptOf(samplesOf((at) => 100 + (at / HOUR) * 200))).toEqual([[true, false]])
  })

  it('is not what a process does while it warms up, nor under a fault', () => {
    expect(keptOf(samplesOf((at) => Math.min(250, 100 + at / 5)))).toEqual([[true, true]])
    expect(keptOf(samplesOf((at) => (at % 600 < 60 ? 400 : 120)))).toEqual([[true, true]])
    expect(keptOf(samplesOf((at) => (at > HOUR - 120 ? 500 : 120)))).toEqual([[true, true]])
  })

  it('is not evaluated for a restarted process, nor in a short run', () => {
    expect(keptOf(samplesOf((at) => 100 + at, 2_700))).toEqual([[false, true]])
    expect(
      growthOf(
        samplesOf((at) => 100 + at, 0, 420),
        420,
      ).map(({ bound }) => bound),
    ).toEqual([undefined])
  })

  it('is the median of all slopes', () => {
    expect(medianSlope([])).toBe(0)
    expect(
      medianSlope([
        [0, 1],
        [10, 21],
        [20, 41],
        [30, 900],
        [40, 81],
      ]),
    ).toBe(2)
  })
})
