import { describe, expect, it } from 'vitest'
import { UnreadBudget, type Reader } from '../../../src/listen/unread-budget.ts'
import { createRecordingLog, createRecordingMetrics } from '../../support/ports.ts'

const cut: string[] = []
function reader(clientAddress: string, unreadBytes: number, unreadSinceMs = 1): Reader & { readonly name: string } {
  const name = `${clientAddress} ${unreadBytes} ${unreadSinceMs}`
  return { name, clientAddress, unreadBytes, unreadSinceMs, abort: () => void cut.push(name) }
}

function look(limitBytes: number, readers: readonly Reader[]) {
  cut.length = 0
  const log = createRecordingLog()
  const metrics = createRecordingMetrics()
  const budget = new UnreadBudget(limitBytes, log, metrics)
  budget.look(readers)
  return { budget, log, metrics, cut: [...cut] }
}

describe('memory for answers that wait for their clients', () => {
  it('aborts no response while all fit', () => {
    const { cut, log } = look(100, [reader('10.0.0.1', 60), reader('10.0.0.2', 40)])
    expect(cut).toEqual([])
    expect(log.lines).toEqual([])
  })

  it('takes from who holds most, the longest waiting first, and no more than it must', () => {
    const { cut } = look(100, [
      reader('10.0.0.1', 30, 7),
      reader('10.0.0.2', 40, 9),
      reader('10.0.0.1', 30, 5),
      reader('10.0.0.1', 30, 6),
    ])
    expect(cut).toEqual(['10.0.0.1 30 5'])
  })

  it('leaves one that has just begun for the last of its client', () => {
    const { cut } = look(100, [reader('10.0.0.1', 60, 0), reader('10.0.0.1', 60, 8)])
    expect(cut).toEqual(['10.0.0.1 60 8'])
  })

  it('never takes from those that are within their share', () => {
    const small = Array.from({ length: 20 }, (_, index) => reader(`10.0.1.${index}`, 2))
    const { cut } = look(100, [...Array.from({ length: 50 }, () => reader('10.0.0.1', 10)), ...small])
    expect(cut).toHaveLength(44)
    expect(cut.every((name) => name.startsWith('10.0.0.1 '))).toBe(true)
  })

  it('cuts among equal ones only until the rest fits', () => {
    const { cut } = look(
      100,
      Array.from({ length: 30 }, (_, index) => reader(`10.0.2.${index}`, 10)),
    )
    expect(cut).toHaveLength(20)
  })

  it('takes an IPv6 network for one client', () => {
    const { cut } = look(100, [reader('2001:db8::1', 40), reader('2001:db8::2', 40), reader('10.0.0.1', 50)])
    expect(cut).toHaveLength(1)
    expect(cut[0]).toContain('2001:db8::')
  })

  it('logs once that the memory limit is reached, and when it no longer is', () => {
    const { budget, log } = look(100, [reader('10.0.0.1', 80), reader('10.0.0.1', 80)])
    budget.look([reader('10.0.0.1', 80), reader('10.0.0.1', 80)])
    for (let calm = 0; calm < 39; calm++) budget.look([reader('10.0.0.1', 95)])
    expect(log.lines).toEqual([expect.stringMatching(/"level":"warn".*"heldBytes":160,"limitBytes":100,"clients":1/)])
    budget.look([reader('10.0.0.1', 20)])
    expect(log.lines.at(-1)).toMatch(/below the memory limit again.*"cut":2/)
  })
})
