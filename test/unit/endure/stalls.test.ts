import { expect, it } from 'vitest'
import { createFaultLog } from '../../../endure/oracle/excuses.ts'
import { judge } from '../../../endure/oracle/judge.ts'
import { createStallJudge, OWN_PARTS, REPLICA_PARTS } from '../../../endure/stalls.ts'
import { callOf, outcomeOf, refusal, shownTo } from '../../support/endure/calls.ts'

/** Ticks of half a second, in each of which a process waits so many milliseconds. */
function ticks(...waits: readonly number[]) {
  const log = createFaultLog()
  let waited = 0
  const stalls = createStallJudge(log, () => waited)
  stalls.look(0, [{ pid: 1, parts: REPLICA_PARTS }])
  for (const [index, wait] of waits.entries()) {
    waited += wait
    stalls.look((index + 1) * 500, [{ pid: 1, parts: REPLICA_PARTS }])
  }
  return { log, stalls }
}

it('notes when a process waited for the machine, and not when it worked or rested', () => {
  const { log, stalls } = ticks(0, 450, 250, 0)
  expect(log.spans.map(({ from, until, parts }) => ({ from, until, parts }))).toEqual([
    { from: 500, until: 1_000, parts: REPLICA_PARTS },
  ])
  expect(stalls.totalMs).toBe(500)
})

it('is one note for as long as it lasts', () => {
  const { log, stalls } = ticks(0, 450, 450, 450, 0, 450)
  expect(log.spans.map(({ from, until }) => [from, until])).toEqual([
    [500, 2_000],
    [2_500, 3_000],
  ])
  expect(stalls.totalMs).toBe(2_000)
})

it('notes when this process itself comes late', () => {
  const log = createFaultLog()
  const stalls = createStallJudge(log, () => 0)
  for (const nowMs of [0, 500, 2_000, 2_500]) stalls.look(nowMs, [])
  expect(log.spans).toEqual([expect.objectContaining({ from: 500, until: 2_000, parts: OWN_PARTS })])
})

it('lets callers think longer while there is no time, and never for so long that their tokens end', () => {
  expect(ticks(0, 0, 50).stalls.pace).toBe(1)
  const busy = ticks(...Array.from({ length: 100 }, () => 490)).stalls.pace
  expect(busy).toBeGreaterThan(3)
  expect(busy).toBeLessThanOrEqual(4)
})

it('excuses what is late, and nothing that is wrong', () => {
  const { log } = ticks(0, 450)
  const at = { startedAt: 600 }
  const unavailable = refusal(503, 'store_unavailable', { 'retry-after': '1' })
  expect(judge(callOf(at), { ...unavailable, endedAt: 700 }, log.spans)).toBeUndefined()
  const wrong = [
    refusal(401, 'invalid_token'),
    refusal(500, 'internal_error'),
    refusal(503, 'draining', { 'retry-after': '1' }),
    outcomeOf({ text: shownTo('c1.0-a', 'c2.0-b') }),
    outcomeOf({ text: '' }),
  ]
  for (const outcome of wrong) expect(judge(callOf(at), { ...outcome, endedAt: 700 }, log.spans)).toBeDefined()
  const intruder = callOf({ ...at, refusal: ['401 invalid_token'] })
  expect(judge(intruder, outcomeOf({ endedAt: 700 }), log.spans)?.[0]).toBe('served who must be refused')
})
