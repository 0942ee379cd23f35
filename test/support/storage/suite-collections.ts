import { describe, expect, it } from 'vitest'
import type { Bound, Store } from '../../../src/storage/index.ts'
import type { StoreMaker } from './suite.ts'
import { atOnce, bytes, useWorlds } from './worlds.ts'

async function present(store: Store, keys: readonly string[]): Promise<string[]> {
  const found: string[] = []
  for (const key of keys) if ((await store.get(key)) !== undefined) found.push(key)
  return found
}

/** A bound of members only. */
const places = (members: number): Bound => ({ members, bytes: 1_000_000 })

export function collectionTests(maker: StoreMaker): void {
  describe('bounded collections', () => {
    const open = useWorlds(maker)
    const numbered = (count: number) => Array.from({ length: count }, (_, index) => `m${index}`)

    it('never hold more than their bound, however many come at once', async () => {
      const { replicas } = await open()
      const keys = numbered(50)
      const add = (index: number) =>
        replicas[index % 2 === 0 ? 0 : 1].admit('clients', `m${index}`, bytes('1'), 60_000 + index, places(10))
      const admitted = await atOnce(50, add)
      expect(admitted.every((admission) => admission.outcome === 'added')).toBe(true)
      expect(await present(replicas[0], keys)).toHaveLength(10)
    })

    it('let the oldest go that was never used, and refuse when all are used', async () => {
      const { replicas } = await open()
      const [store, other] = replicas
      for (const [index, key] of numbered(4).entries()) {
        await store.admit('clients', key, bytes(key), 60_000 + index * 10, places(4))
      }
      await other.touch('clients', 'm0', 90_000)
      expect(await other.admit('clients', 'n1', bytes('1'), 70_000, places(4))).toMatchObject({ outcome: 'added' })
      expect(await present(store, [...numbered(4), 'n1'])).toEqual(['m0', 'm2', 'm3', 'n1'])
      for (const key of ['m2', 'm3', 'n1']) await store.touch('clients', key, 90_000)
      expect(await store.admit('clients', 'n2', bytes('1'), 70_000, places(4))).toMatchObject({ outcome: 'full' })
      expect(await store.get('n2')).toBeUndefined()
      expect(await store.admit('others', 'n3', bytes('1'), 70_000, places(4)), 'another collection').toMatchObject({
        outcome: 'added',
      })
    })

    it('take a member’s new value without a place, and it stays used', async () => {
      const { replicas } = await open()
      const [store] = replicas
      expect(await store.admit('clients', 'm0', bytes('1'), 60_000, places(1))).toMatchObject({ outcome: 'added' })
      await store.touch('clients', 'm0', 60_000)
      expect(await store.admit('clients', 'm0', bytes('2'), 60_000, places(1))).toMatchObject({ outcome: 'added' })
      expect((await store.get('m0'))?.value).toEqual(bytes('2'))
      expect(await store.admit('clients', 'm1', bytes('1'), 60_000, places(1))).toMatchObject({ outcome: 'full' })
    })

    it('have a place again when a member was removed or has ended', async () => {
      const { replicas, advance } = await open()
      const [store] = replicas
      await store.admit('clients', 'm0', bytes('1'), 60_000, places(2))
      await store.admit('clients', 'm1', bytes('1'), 60_000, places(2))
      await store.touch('clients', 'm0', 60_000)
      await store.touch('clients', 'm1', 200)
      expect(await store.admit('clients', 'm2', bytes('1'), 60_000, places(2))).toMatchObject({ outcome: 'full' })
      await store.remove('clients', 'm0')
      expect(await store.get('m0')).toBeUndefined()
      expect(await store.admit('clients', 'm2', bytes('1'), 60_000, places(2))).toMatchObject({ outcome: 'added' })
      await store.touch('clients', 'm2', 60_000)
      await advance(200)
      expect(await store.admit('clients', 'm3', bytes('1'), 60_000, places(2))).toMatchObject({ outcome: 'added' })
      expect(await present(store, ['m0', 'm1', 'm2', 'm3'])).toEqual(['m2', 'm3'])
    })

    it('let a member live on from when it was touched, and bring none back that is gone', async () => {
      const { replicas, advance } = await open()
      const [store] = replicas
      await store.admit('clients', 'm0', bytes('1'), 200, places(2))
      await store.touch('clients', 'm0', 60_000)
      await store.touch('clients', 'gone', 60_000)
      await advance(200)
      expect(await present(store, ['m0', 'gone'])).toEqual(['m0'])
      expect(await store.admit('clients', 'm1', bytes('1'), 60_000, places(2))).toMatchObject({ outcome: 'added' })
      expect(await store.admit('clients', 'm2', bytes('1'), 60_000, places(2))).toMatchObject({ outcome: 'added' })
      expect(await present(store, ['m0', 'm1', 'm2'])).toEqual(['m0', 'm2'])
    })

    it('let those that were never used go until the bytes fit, and say what they hold', async () => {
      const { replicas } = await open()
      const [store, other] = replicas
      const add = (key: string, size: number, ms: number) =>
        other.admit('clients', key, Buffer.alloc(size), ms, { members: 10, bytes: 1_000 })
      for (const [index, key] of numbered(4).entries()) await add(key, 250, 60_000 + index * 10)
      await store.touch('clients', 'm1', 90_000)
      expect(await add('n1', 400, 70_000)).toEqual({ outcome: 'added', evicted: 2, members: 3, bytes: 900 })
      expect(await present(store, [...numbered(4), 'n1'])).toEqual(['m1', 'm3', 'n1'])
      expect(await add('n1', 100, 70_000)).toEqual({ outcome: 'added', evicted: 0, members: 3, bytes: 600 })
      expect(await add('n1', 500, 70_000), 'instead of its own').toMatchObject({ evicted: 0, bytes: 1_000 })
      await store.remove('clients', 'm3')
      expect(await add('n2', 1, 70_000)).toEqual({ outcome: 'added', evicted: 0, members: 3, bytes: 751 })
      await store.touch('clients', 'n1', 90_000)
      expect(await add('n3', 260, 70_000)).toEqual({ outcome: 'full', evicted: 1, members: 2, bytes: 750 })
      expect(await add('n4', 1_001, 70_000), 'never').toEqual({ outcome: 'full', evicted: 0, members: 2, bytes: 750 })
      expect(await present(store, ['m1', 'n1', 'n2', 'n3', 'n4'])).toEqual(['m1', 'n1'])
    })

    it('free the bytes of expired entries', async () => {
      const { replicas, advance } = await open()
      const [store] = replicas
      const bound = { members: 10, bytes: 100 }
      await store.admit('clients', 'm0', Buffer.alloc(60), 60_000, bound)
      await store.touch('clients', 'm0', 200)
      expect(await store.admit('clients', 'm1', Buffer.alloc(60), 60_000, bound)).toMatchObject({ outcome: 'full' })
      await advance(200)
      const admission = await store.admit('clients', 'm1', Buffer.alloc(60), 60_000, bound)
      expect(admission).toEqual({ outcome: 'added', evicted: 0, members: 1, bytes: 60 })
    })

    it('that do not evict hold exactly their bound of 50 that come at once', async () => {
      const { replicas } = await open()
      const bound = { ...places(10), evicts: false }
      const admitted = await atOnce(50, (index) =>
        replicas[index % 2 === 0 ? 0 : 1].admit('clients', `m${index}`, bytes('1'), 60_000, bound),
      )
      const added = admitted.flatMap(({ outcome }, index) => (outcome === 'added' ? [`m${index}`] : []))
      expect(added).toHaveLength(10)
      expect(admitted.every(({ evicted, members }) => evicted === 0 && members <= 10)).toBe(true)
      expect((await present(replicas[0], numbered(50))).toSorted()).toEqual(added.toSorted())
      const [known = ''] = added
      expect(await replicas[0].admit('clients', known, bytes('2'), 60_000, bound)).toMatchObject({ outcome: 'added' })
      await replicas[1].remove('clients', known)
      expect(await replicas[0].admit('clients', 'other', bytes('1'), 60_000, bound)).toMatchObject({ outcome: 'added' })
    })

    it('list their live members in pages', async () => {
      const { replicas, advance } = await open()
      const [store, other] = replicas
      expect(await store.members('clients', 0, 10)).toEqual([])
      for (const [index, key] of numbered(5).entries())
        await store.admit('clients', key, bytes('1'), index === 1 ? 200 : 60_000 + index * 10, places(10))
      await store.admit('others', 'x0', bytes('1'), 60_000, places(10))
      await advance(200)
      await store.touch('clients', 'm0', 90_000)
      const pages = [await other.members('clients', 0, 3), await other.members('clients', 3, 3)]
      expect(pages.map(({ length }) => length)).toEqual([3, 1])
      expect(pages.flat().toSorted()).toEqual(['m0', 'm2', 'm3', 'm4'])
      expect(await other.members('clients', 4, 3)).toEqual([])
    })

    it('hold nothing with a bound of none', async () => {
      const { replicas } = await open()
      expect(await replicas[0].admit('clients', 'm0', bytes('1'), 60_000, places(0))).toMatchObject({ outcome: 'full' })
      expect(await replicas[0].get('m0')).toBeUndefined()
    })
  })
}
