import { describe, expect, it } from 'vitest'
import { monotonic } from '../../../src/core/index.ts'
import { StallDetector, type StallLimits } from '../../../src/listen/stall-detector.ts'

const one = { withinMs: 1000, least: 1, totalMs: Number.POSITIVE_INFINITY }
const LIMITS: StallLimits = { unread_answer: { ...one, least: 240 }, unread_body: one, pipelining: one }

describe('how long an answer may wait for its client', () => {
  const look = (watch: StallDetector, progress: number, nowMs: number) =>
    watch.isTooLong('unread_answer', progress, LIMITS, monotonic(nowMs))

  it('is for ever while the client takes the least that it has to', () => {
    const watch = new StallDetector()
    for (let round = 0; round < 20; round++) expect(look(watch, round * 240, round * 900)).toBe(false)
  })

  it('ends where it only takes a little now and then', () => {
    const watch = new StallDetector()
    for (let round = 0; round < 10; round++) expect(look(watch, round, round * 100)).toBe(false)
    expect(look(watch, 239, 1000)).toBe(true)
  })

  it('counts chunks, and starts over when nothing is pending', () => {
    const watch = new StallDetector()
    expect(look(watch, 0, 0)).toBe(false)
    expect(look(watch, 120, 500)).toBe(false)
    expect(look(watch, 240, 900)).toBe(false)
    expect(look(watch, 240, 1800)).toBe(false)
    expect(watch.sinceMs('unread_answer')).toBe(0)
    watch.free()
    expect(look(watch, 240, 9000)).toBe(false)
    expect(watch.sinceMs('unread_answer')).toBe(9000)
    expect(watch.sinceMs('pipelining')).toBe(0)
  })
})
