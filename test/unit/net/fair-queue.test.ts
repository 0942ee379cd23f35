import { describe, expect, it } from 'vitest'
import { createFairQueue, type Slot } from '../../../src/net/fair-queue.ts'
import { settleMicrotasks } from '../../support/cache/world.ts'

/** A queue whose calls end when a test says so, and the order in which they began. Strangers begin with an s. */
function open(bounds: { maxConcurrent: number; share: number; maxQueued: number }) {
  const turns = createFairQueue(bounds)
  const begun: string[] = []
  const refused: string[] = []
  const places = new Map<string, Slot>()
  return {
    begun,
    refused,
    take: async (...names: readonly string[]) => {
      for (const name of names) {
        const caller = name.replace(/\d+$/, '')
        const isUnauthenticated = caller.startsWith('s')
        const place = turns.take(caller === 'own' ? undefined : { caller, isUnauthenticated })
        places.set(name, place)
        place.turn.then(
          () => begun.push(name),
          () => refused.push(name),
        )
      }
      await settleMicrotasks()
    },
    leave: async (...names: readonly string[]) => {
      for (const name of names) places.get(name)?.leave()
      await settleMicrotasks()
    },
  }
}

describe('turns', () => {
  it('lend one caller all unused slots', async () => {
    const { take, leave, begun } = open({ maxConcurrent: 4, share: 2, maxQueued: 100 })
    await take('a1', 'a2', 'a3', 'a4', 'a5')
    expect(begun).toEqual(['a1', 'a2', 'a3', 'a4'])
    await leave('a2')
    expect(begun).toEqual(['a1', 'a2', 'a3', 'a4', 'a5'])
  })

  it('give others their shares while places are lent, and one of many its share', async () => {
    const { take, leave, begun } = open({ maxConcurrent: 4, share: 2, maxQueued: 100 })
    await take('a1', 'a2', 'a3', 'a4', 'b1', 'b2', 'b3', 'c1')
    expect(begun).toEqual(['a1', 'a2', 'a3', 'a4', 'b1', 'b2'])
    await leave('a1', 'a2')
    expect(begun.slice(6)).toEqual([])
    await leave('a3')
    expect(begun.slice(6)).toEqual(['c1'])
    await leave('b1')
    expect(begun.slice(7)).toEqual(['b3'])
  })

  it('never run more than twice as many calls, however many are lent', async () => {
    const { take, begun } = open({ maxConcurrent: 8, share: 2, maxQueued: 100 })
    await take(...Array.from({ length: 20 }, (_, index) => `a${index}`))
    for (const caller of 'bcdefghijkl') await take(`${caller}1`, `${caller}2`)
    expect(begun).toHaveLength(14)
  })

  it('come to known callers before strangers, who lose their place in a full queue first', async () => {
    const { take, leave, begun, refused } = open({ maxConcurrent: 1, share: 1, maxQueued: 3 })
    await take('s1', 's2', 's3', 't1', 'a1', 'sother1')
    expect(refused).toEqual(['s3', 'sother1'])
    await leave('s1', 't1')
    expect(begun).toEqual(['s1', 't1', 'a1'])
    await take('b1', 'c1')
    expect(refused).toEqual(['s3', 'sother1'])
    await take('d1')
    expect(refused).toEqual(['s3', 'sother1', 's2'])
    await take('e1')
    expect(refused).toEqual(['s3', 'sother1', 's2', 'e1'])
    await leave('a1', 'b1', 'c1', 'd1')
    expect(begun).toEqual(['s1', 't1', 'a1', 'b1', 'c1', 'd1'])
  })

  it('go round robin among those that wait', async () => {
    const { take, leave, begun } = open({ maxConcurrent: 1, share: 1, maxQueued: 100 })
    await take('a1', 'a2', 'a3', 'a4', 'b1', 'c1', 'b2')
    await leave('a1', 'a2', 'b1', 'c1', 'a3', 'b2')
    expect(begun).toEqual(['a1', 'a2', 'b1', 'c1', 'a3', 'b2', 'a4'])
  })

  it('delay no caller behind another whose calls hang', async () => {
    const { take, begun, refused } = open({ maxConcurrent: 64, share: 4, maxQueued: 100 })
    await take(...Array.from({ length: 90 }, (_, index) => `hanging${index}`))
    for (let caller = 0; caller < 60; caller++) await take(`${'x'.repeat(caller + 1)}1`)
    expect(begun).toHaveLength(64 + 60)
    expect(refused).toEqual([])
  })

  it('reject from a full queue the last call of the caller with the most calls', async () => {
    const { take, leave, begun, refused } = open({ maxConcurrent: 1, share: 1, maxQueued: 3 })
    await take('a1', 'a2', 'a3', 'a4', 'b1')
    expect(refused).toEqual(['a4'])
    await take('a5', 'c1')
    expect(refused).toEqual(['a4', 'a5', 'a3'])
    await take('d1')
    expect(refused).toEqual(['a4', 'a5', 'a3', 'd1'])
    await leave('a1', 'a2', 'b1')
    expect(begun).toEqual(['a1', 'a2', 'b1', 'c1'])
  })

  it('are forgotten by those that wait no longer', async () => {
    const { take, leave, begun, refused } = open({ maxConcurrent: 1, share: 1, maxQueued: 1 })
    await take('a1', 'b1')
    await leave('b1', 'b1')
    expect(refused).toEqual(['b1'])
    await take('c1')
    await leave('a1', 'a1')
    expect(begun).toEqual(['a1', 'c1'])
    await leave('c1')
    await take('a2', 'a3')
    await leave('a1', 'a2')
    expect(begun).toEqual(['a1', 'c1', 'a2', 'a3'])
  })

  it('are no matter of callers for calls of the proxy itself', async () => {
    const { take, begun } = open({ maxConcurrent: 3, share: 1, maxQueued: 1 })
    await take('own1', 'own2', 'own3', 'own4')
    expect(begun).toEqual(['own1', 'own2', 'own3'])
  })
})
