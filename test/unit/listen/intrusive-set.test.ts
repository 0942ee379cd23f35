import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { IntrusiveSet } from '../../../src/listen/index.ts'

const member = () => ({ slot: -1 })

describe('an intrusive set', () => {
  it('holds what a set would hold, whatever is added and removed in whatever order', () => {
    const check = () =>
      fc.assert(
        fc.property(fc.array(fc.tuple(fc.boolean(), fc.nat(9))), (steps) => {
          const all = Array.from({ length: 10 }, member)
          const [set, model] = [new IntrusiveSet(), new Set<object>()]
          for (const [isAdded, index] of steps) {
            const one = all[index] ?? member()
            if (isAdded) {
              set.add(one)
              model.add(one)
            } else {
              set.delete(one)
              model.delete(one)
            }
            expect(set.size).toBe(model.size)
            expect(new Set(set)).toEqual(model)
          }
        }),
        { seed: 1, numRuns: 500 },
      )
    expect(check).not.toThrow()
  })

  it('can lose members while it is gone over', () => {
    const set = new IntrusiveSet<{ slot: number }>()
    const all = [member(), member(), member()]
    for (const one of all) set.add(one)
    const seen = []
    for (const one of set) {
      seen.push(one)
      set.delete(one)
    }
    expect(seen).toEqual(all)
    expect(set.size).toBe(0)
  })
})
