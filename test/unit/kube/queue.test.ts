import { expect, test } from 'vitest'
import { createQueue } from '../../../src/kube/index.ts'
import { createManualTimers, silentLog } from '../../support/kube/manual-timers.ts'

const timers = createManualTimers()
const common = { log: silentLog, timers, random: () => 1 }

test('a key that waits is worked on once however often it was added', async () => {
  const worked: string[] = []
  const gate = Promise.withResolvers<void>()
  const queue = createQueue({
    ...common,
    concurrency: 1,
    work: async (key) => {
      worked.push(key)
      await gate.promise
      return undefined
    },
  })
  for (const key of ['a', 'b', 'b', 'c', 'b']) queue.add(key)
  expect(queue.depth).toBe(2)
  gate.resolve()
  await queue.idle()
  expect(worked).toEqual(['a', 'b', 'c'])
})

test('a key that is added while it is worked on comes once more, and never twice at a time', async () => {
  let running = 0
  let most = 0
  let rounds = 0
  const queue = createQueue({
    ...common,
    work: async (key) => {
      most = Math.max(most, ++running)
      if (++rounds === 1) for (let times = 0; times < 5; times++) queue.add(key)
      await Promise.resolve()
      running--
      return undefined
    },
  })
  queue.add('a')
  await queue.idle()
  expect([most, rounds]).toEqual([1, 2])
})

test('a failing key comes back after 5 ms, then twice that, and at most 5 min; a success forgets it', async () => {
  const at: number[] = []
  let isBroken = true
  const queue = createQueue({
    ...common,
    work: () => {
      at.push(timers.now())
      return isBroken ? Promise.reject(new Error('no')) : Promise.resolve(undefined)
    },
  })
  queue.add('a')
  await timers.advance(5 + 10 + 20 + 40)
  expect(at.map((time) => time - (at[0] ?? 0))).toEqual([0, 5, 15, 35, 75])
  await timers.advance(3_600_000)
  const [before, last] = at.slice(-2)
  expect((last ?? 0) - (before ?? 0)).toBe(300_000)
  isBroken = false
  await timers.advance(300_000)
  const count = at.length
  await timers.advance(3_600_000)
  expect(at).toHaveLength(count)
})

test('what a failure says about when to come back is honoured', async () => {
  const at: number[] = []
  const queue = createQueue({
    ...common,
    retryAfterMs: () => 7000,
    work: () => {
      at.push(timers.now())
      return at.length === 1 ? Promise.reject(new Error('429')) : Promise.resolve(undefined)
    },
  })
  queue.add('a')
  await timers.advance(6999)
  expect(at).toHaveLength(1)
  await timers.advance(1)
  expect(at).toHaveLength(2)
  await queue.close()
})

test('thousands of keys that fail together are tried again 50 times a second, not all at once', async () => {
  let tries = 0
  const queue = createQueue({
    ...common,
    concurrency: 16,
    work: () => {
      tries++
      return Promise.reject(new Error('no'))
    },
  })
  for (let at = 0; at < 2000; at++) queue.add(`k${at}`)
  await timers.advance(3000)
  expect(tries).toBeGreaterThan(2100)
  expect(tries).toBeLessThan(2300)
  await queue.close()
})

test('a key comes back when its work says so, and earlier when it is added', async () => {
  let rounds = 0
  const queue = createQueue({ ...common, work: () => Promise.resolve(++rounds < 3 ? 1000 : undefined) })
  queue.add('a')
  await timers.advance(500)
  expect(rounds).toBe(1)
  queue.add('a')
  await timers.advance(999)
  expect(rounds).toBe(2)
  await timers.advance(2000)
  expect(rounds).toBe(3)
})

test('after close nothing more is taken, and what runs is waited for', async () => {
  const gate = Promise.withResolvers<undefined>()
  const worked: string[] = []
  const queue = createQueue({
    ...common,
    concurrency: 1,
    work: async (key) => {
      await gate.promise
      worked.push(key)
      return 10
    },
  })
  queue.add('a')
  queue.add('b')
  const closed = queue.close()
  queue.add('c')
  gate.resolve(undefined)
  await closed
  await timers.advance(1000)
  expect(worked).toEqual(['a'])
})
