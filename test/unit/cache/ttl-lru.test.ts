import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { createTtlLru, type RemovalReason } from '../../../src/cache/index.ts'
import { createManualClock, START_MS } from '../../support/ports.ts'

const FOREVER = START_MS + 1e9

test('a value is given until its end and not at its end', () => {
  const clock = createManualClock()
  const cache = createTtlLru<number>({ clock, maxEntries: 10 })
  cache.set('a', 1, START_MS + 1_000)
  clock.advance(999)
  expect(cache.get('a')).toBe(1)
  clock.advance(1)
  expect(cache.get('a')).toBeUndefined()
  expect(cache.size).toBe(0)
})

test('a value whose end is past is not kept, and the one before it is gone', () => {
  const cache = createTtlLru<number>({ clock: createManualClock(), maxEntries: 10 })
  cache.set('a', 1, FOREVER)
  cache.set('a', 2, START_MS)
  expect(cache.get('a')).toBeUndefined()
})

test('the least recently used goes first; peeking is not using', () => {
  const cache = createTtlLru<number>({ clock: createManualClock(), maxEntries: 3 })
  for (const key of ['a', 'b', 'c']) cache.set(key, 1, FOREVER)
  cache.get('a')
  cache.peek('b')
  cache.set('d', 1, FOREVER)
  expect([...cache.entries()].map(([key]) => key)).toEqual(['c', 'a', 'd'])
})

test('weights bound the whole, and what is heavier than all of it is not kept', () => {
  const cache = createTtlLru<string>({
    clock: createManualClock(),
    maxEntries: 100,
    maxWeight: 10,
    weigh: (value) => value.length,
  })
  cache.set('a', 'xxxxxx', FOREVER)
  cache.set('b', 'xxxx', FOREVER)
  expect(cache.size).toBe(2)
  cache.set('c', 'x', FOREVER)
  expect(cache.get('a')).toBeUndefined()
  expect(cache.get('b')).toBe('xxxx')
  cache.set('big', 'xxxxxxxxxxx', FOREVER)
  expect(cache.get('big')).toBeUndefined()
  expect(cache.get('b')).toBe('xxxx')
})

test('the number bounds what is weighed as well', () => {
  const options = { maxEntries: 2, maxWeight: 100, weigh: (value: string) => value.length }
  const cache = createTtlLru<string>({ clock: createManualClock(), ...options })
  for (const key of ['a', 'b', 'c']) cache.set(key, '', FOREVER)
  expect([...cache.entries()].map(([key]) => key)).toEqual(['b', 'c'])
})

test('an index beside it is notified of every removal with the reason', () => {
  const clock = createManualClock()
  const removed: [string, RemovalReason][] = []
  const cache = createTtlLru<number>({ clock, maxEntries: 2, onRemove: (key, _value, why) => removed.push([key, why]) })
  cache.set('a', 1, START_MS + 10)
  cache.set('a', 2, START_MS + 10)
  cache.set('b', 1, FOREVER)
  cache.set('c', 1, FOREVER)
  cache.delete('b')
  cache.set('d', 1, START_MS + 10)
  clock.advance(10)
  cache.get('d')
  cache.clear()
  expect(removed).toEqual([
    ['a', 'replaced'],
    ['a', 'capacity'],
    ['b', 'deleted'],
    ['d', 'expired'],
    ['c', 'deleted'],
  ])
})

test('expired entries without readers are removed as others are added', () => {
  const clock = createManualClock()
  const cache = createTtlLru<number>({ clock, maxEntries: 10_000 })
  for (let index = 0; index < 100; index += 1) cache.set(`old ${index}`, index, START_MS + 1_000)
  clock.advance(1_000)
  for (let index = 0; index < 255; index += 1) cache.set(`new ${index}`, index, FOREVER)
  expect(cache.size).toBe(255)
  // Ever rarer, the more there are.
  for (let index = 0; index < 3_745; index += 1) cache.set(`more ${index}`, index, FOREVER)
  cache.set('short', 0, START_MS + 1_001)
  clock.advance(1)
  for (let index = 0; index < 300; index += 1) cache.set(`then ${index}`, index, FOREVER)
  expect(cache.size).toBe(4_301)
})

test('entries may be deleted while they are gone through, the first, the last and others', () => {
  const cache = createTtlLru<number>({ clock: createManualClock(), maxEntries: 10 })
  for (const key of ['a', 'b', 'c', 'd']) cache.set(key, 1, FOREVER)
  const seen: string[] = []
  for (const [key] of cache.entries()) {
    seen.push(key)
    if (key !== 'b') cache.delete(key)
  }
  expect(seen).toEqual(['a', 'b', 'c', 'd'])
  expect([...cache.entries()]).toEqual([['b', 1]])
})

test('it answers like a plain map with ends and an order of use', () => {
  const key = fc.constantFrom('a', 'b', 'c', 'd', 'e', '__proto__')
  const step = fc.oneof(
    fc.record({ op: fc.constant('set' as const), key, ms: fc.integer({ min: 0, max: 50 }) }),
    fc.record({ op: fc.constant('get' as const), key, ms: fc.constant(0) }),
    fc.record({ op: fc.constant('delete' as const), key, ms: fc.constant(0) }),
    fc.record({ op: fc.constant('wait' as const), key, ms: fc.integer({ min: 1, max: 30 }) }),
  )
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 4 }), fc.array(step, { maxLength: 60 }), (maxEntries, steps) => {
      const clock = createManualClock()
      const cache = createTtlLru<number>({ clock, maxEntries })
      let model: { key: string; value: number; endMs: number }[] = []
      steps.forEach((run, value) => {
        if (run.op === 'wait') clock.advance(run.ms)
        const found = model.find((entry) => entry.key === run.key)
        const isLive = found !== undefined && clock.now() < found.endMs
        if (run.op === 'get') {
          expect(cache.get(run.key)).toBe(isLive ? found.value : undefined)
          model = model.filter((entry) => entry !== found)
          if (isLive) model.push(found)
        } else if (run.op !== 'wait') {
          model = model.filter((entry) => entry !== found)
          if (run.op === 'delete') expect(cache.delete(run.key)).toBe(found !== undefined)
          else {
            cache.set(run.key, value, clock.now() + run.ms)
            if (run.ms > 0) model.push({ key: run.key, value, endMs: clock.now() + run.ms })
            model = model.slice(-maxEntries)
          }
        }
        expect(cache.size).toBe(model.length)
      })
    }),
    { numRuns: 2_000, seed: 1 },
  )
})
