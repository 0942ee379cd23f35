import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Roster } from '../../src/proxy/roster.ts'

const member = () => ({ slot: -1 })

describe('the roster of requests', () => {
  it('holds what a set would hold, whatever is added and removed in whatever order', () => {
    const check = () =>
      fc.assert(
        fc.property(fc.array(fc.tuple(fc.boolean(), fc.nat(9))), (steps) => {
          const all = Array.from({ length: 10 }, member)
          const [roster, model] = [new Roster(), new Set<object>()]
          for (const [isAdded, index] of steps) {
            const one = all[index] ?? member()
            if (isAdded) {
              roster.add(one)
              model.add(one)
            } else {
              roster.delete(one)
              model.delete(one)
            }
            expect(roster.size).toBe(model.size)
            expect(new Set(roster)).toEqual(model)
          }
        }),
        { seed: 1, numRuns: 500 },
      )
    expect(check).not.toThrow()
  })

  it('can lose members while it is gone over', () => {
    const roster = new Roster<{ slot: number }>()
    const all = [member(), member(), member()]
    for (const one of all) roster.add(one)
    const seen = []
    for (const one of roster) {
      seen.push(one)
      roster.delete(one)
    }
    expect(seen).toEqual(all)
    expect(roster.size).toBe(0)
  })
})
