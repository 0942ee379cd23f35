import { expect, it } from 'vitest'
import { createLook } from '../../src/compose/memory-at-rest.ts'

const MIB = 1024 * 1024
const AFTER = 15 * MIB

function watched(atFirst = 30 * MIB, young = 0) {
  let [cpu, collected, held] = [300, 0, atFirst]
  const look = createLook({
    cpuMs: () => cpu,
    heap: () => ({ used: held, young, held }),
    collect() {
      collected += 1
      held = AFTER
    },
  })
  return {
    /** The heap is that large from now on. */
    holds(bytes: number): void {
      held = bytes
    },
    /** Looks that each follow five seconds in which so many milliseconds of CPU were spent; gives the collections until then. */
    after(...spent: readonly number[]): number {
      for (const each of spent) {
        cpu += each
        look()
      }
      return collected
    },
  }
}

it('collects once what the start left behind, when nothing is asked', () => {
  const process = watched()
  expect(process.after(2, 2)).toBe(0)
  expect(process.after(2)).toBe(1)
  expect(process.after(...Array<number>(100).fill(2))).toBe(1)
})

it('collects again when the heap has grown, and not while there is work', () => {
  const process = watched()
  process.after(2, 2, 2)
  process.holds(AFTER + 20 * MIB)
  expect(process.after(4000, 120, 2, 2, 900, 2, 90)).toBe(1)
  expect(process.after(2)).toBe(2)
})

it('does not collect for little', () => {
  const process = watched()
  process.after(2, 2, 2)
  process.holds(AFTER + 5 * MIB)
  expect(process.after(900, 2, 2, 2, 2)).toBe(1)
})

it('leaves a large heap to V8, whose collections nobody waits for', () => {
  expect(watched(97 * MIB).after(2, 2, 2, 2)).toBe(0)
})

it('collects a heap that is large by what is young', () => {
  expect(watched(120 * MIB, 64 * MIB).after(2, 2, 2, 2)).toBe(1)
})
