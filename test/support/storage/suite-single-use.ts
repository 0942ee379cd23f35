import { describe, expect, it } from 'vitest'
import type { StoreMaker } from './suite.ts'
import { atOnce, bytes, useWorlds } from './worlds.ts'

export function singleUseTests(maker: StoreMaker): void {
  describe('races', () => {
    const open = useWorlds(maker)

    it('of 50 that take one key at two replicas exactly one gets it', async () => {
      const { replicas } = await open()
      for (const key of ['code', 'state', 'refresh']) {
        await replicas[0].put(key, bytes(key), 60_000)
        const taken = await atOnce(50, (index) => replicas[index % 2 === 0 ? 0 : 1].take(key))
        expect(taken.filter((found) => found !== undefined).map(({ value }) => value.toString())).toEqual([key])
        expect(await replicas[0].get(key)).toBeUndefined()
      }
    })

    it('of 50 that write one absent key exactly one does', async () => {
      const { replicas } = await open()
      const write = (index: number) => replicas[index % 2 === 0 ? 0 : 1].putIfAbsent('a', bytes(String(index)), 60_000)
      const written = await atOnce(50, write)
      expect(written.filter(Boolean)).toHaveLength(1)
      expect((await replicas[0].get('a'))?.value.toString()).toBe(String(written.indexOf(true)))
    })

    it('of 50 that change one version exactly one does', async () => {
      const { replicas } = await open()
      await replicas[0].put('a', bytes('before'), 60_000)
      const version = (await replicas[0].get('a'))?.version
      const change = (index: number) =>
        replicas[index % 2 === 0 ? 0 : 1].compareAndSet('a', version, bytes(String(index)), 60_000)
      const changed = await atOnce(50, change)
      expect(changed.filter(Boolean)).toHaveLength(1)
      expect((await replicas[1].get('a'))?.value.toString()).toBe(String(changed.indexOf(true)))
    })

    it('of 50 that create one key by comparing with nothing exactly one does', async () => {
      const { replicas } = await open()
      const create = (index: number) =>
        replicas[index % 2 === 0 ? 0 : 1].compareAndSet('a', undefined, bytes(String(index)), 60_000)
      expect((await atOnce(50, create)).filter(Boolean)).toHaveLength(1)
    })

    it('loses no change of 20 that add to one number', async () => {
      const { replicas } = await open()
      await replicas[0].put('sum', bytes('0'), 60_000)
      await atOnce(20, async (index) => {
        const store = replicas[index % 2 === 0 ? 0 : 1]
        for (;;) {
          const found = await store.get('sum')
          const next = bytes(String(Number(found?.value.toString()) + 1))
          if (await store.compareAndSet('sum', found?.version, next, 60_000)) return
        }
      })
      expect((await replicas[0].get('sum'))?.value.toString()).toBe('20')
    })

    it('gives another version to each write, of the same bytes too', async () => {
      const { replicas } = await open()
      const versions = new Set<string | undefined>()
      for (let write = 0; write < 5; write += 1) {
        await replicas[0].put('a', bytes('same'), 60_000)
        versions.add((await replicas[1].get('a'))?.version)
      }
      expect(versions.size).toBe(5)
    })

    it('changes nothing that was deleted, recreated or written since', async () => {
      const { replicas } = await open()
      const [store] = replicas
      await store.put('a', bytes('1'), 60_000)
      const version = (await store.get('a'))?.version
      await store.delete('a')
      expect(await store.compareAndSet('a', version, bytes('2'), 60_000)).toBe(false)
      await store.put('a', bytes('1'), 60_000)
      expect(await store.compareAndSet('a', version, bytes('2'), 60_000)).toBe(false)
      expect(await store.compareAndSet('a', undefined, bytes('2'), 60_000)).toBe(false)
      expect((await store.get('a'))?.value).toEqual(bytes('1'))
    })

    it('lets an earlier holder of a lock write nothing over what a later one wrote', async () => {
      const { replicas } = await open()
      const [store] = replicas
      expect(await store.compareAndSet('a', undefined, bytes('second'), 60_000, 2)).toBe(true)
      const version = (await store.get('a'))?.version
      expect(await store.compareAndSet('a', version, bytes('first'), 60_000, 1)).toBe(false)
      expect(await store.compareAndSet('a', version, bytes('second again'), 60_000, 2)).toBe(true)
      const unfenced = (await store.get('a'))?.version
      expect(await store.compareAndSet('a', unfenced, bytes('no fence'), 60_000)).toBe(true)
      const last = (await store.get('a'))?.version
      expect(await store.compareAndSet('a', last, bytes('first'), 60_000, 1), 'a write without a fence').toBe(false)
      expect(await store.compareAndSet('a', last, bytes('third'), 60_000, 3)).toBe(true)
    })
  })
}
