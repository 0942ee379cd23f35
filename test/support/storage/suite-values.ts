import { describe, expect, it } from 'vitest'
import { StoreError } from '../../../src/storage/index.ts'
import type { StoreMaker } from './suite.ts'
import { bytes, useWorlds } from './worlds.ts'

export function valueTests(maker: StoreMaker): void {
  describe('values', () => {
    const open = useWorlds(maker)

    it('returns the exact stored bytes on every replica', async () => {
      const { replicas } = await open()
      const value = Buffer.from(Array.from({ length: 256 }, (_, index) => index))
      await replicas[0].put('a', value, 60_000)
      expect((await replicas[1].get('a'))?.value).toEqual(value)
      await replicas[1].put('a', Buffer.alloc(0), 60_000)
      expect((await replicas[0].get('a'))?.value).toEqual(Buffer.alloc(0))
      const large = Buffer.alloc(1024 * 1024, 7)
      await replicas[0].put('a', large, 60_000)
      expect((await replicas[1].get('a'))?.value.equals(large)).toBe(true)
    })

    it('has no value for an unwritten or deleted key', async () => {
      const { replicas } = await open()
      expect(await replicas[0].get('a')).toBeUndefined()
      await replicas[0].put('a', bytes('1'), 60_000)
      await replicas[0].put('b', bytes('2'), 60_000)
      await replicas[1].delete('a', 'b', 'c')
      expect(await replicas[0].get('a')).toBeUndefined()
      expect(await replicas[0].get('b')).toBeUndefined()
      await replicas[1].delete()
    })

    it('keeps what is in it apart from what callers do to their buffers', async () => {
      const { replicas } = await open()
      const value = bytes('before')
      await replicas[0].put('a', value, 60_000)
      value.fill(0)
      const read = await replicas[0].get('a')
      read?.value.fill(0)
      expect((await replicas[0].get('a'))?.value).toEqual(bytes('before'))
    })

    it('forgets every kind of key after its time to live', async () => {
      const { replicas, advance } = await open()
      const [store] = replicas
      // A real Redis counts while all of them are written and read.
      const TTL_MS = 500
      await store.put('put', bytes('1'), TTL_MS)
      await store.putIfAbsent('absent', bytes('1'), TTL_MS)
      await store.compareAndSet('set', undefined, bytes('1'), TTL_MS)
      await store.admit('members', 'member', bytes('1'), TTL_MS, { members: 10, bytes: 1_000 })
      const keys = ['put', 'absent', 'set', 'member']
      for (const key of keys) expect(await store.get(key), `key ${key}`).toBeDefined()
      await advance(TTL_MS)
      for (const key of keys) expect(await store.get(key), `key ${key}`).toBeUndefined()
      expect(await store.take('put')).toBeUndefined()
      expect(await store.putIfAbsent('absent', bytes('2'), 60_000)).toBe(true)
      expect(await store.compareAndSet('set', undefined, bytes('2'), 60_000)).toBe(true)
    })

    it('starts the time to live again with each write', async () => {
      const { replicas, advance } = await open()
      const [store] = replicas
      await store.put('a', bytes('1'), 100)
      await store.put('a', bytes('2'), 60_000)
      await advance(100)
      const found = await store.get('a')
      expect(found?.value).toEqual(bytes('2'))
      expect(await store.compareAndSet('a', found?.version, bytes('3'), 100)).toBe(true)
      await advance(100)
      expect(await store.get('a')).toBeUndefined()
    })

    it('takes only names, values and times that the port allows', async () => {
      const { replicas } = await open()
      const [store] = replicas
      const value = bytes('1')
      for (const name of ['', 'a b', 'a\n', 'ä', 'a'.repeat(513)]) {
        await expect(store.get(name), `name ${JSON.stringify(name)}`).rejects.toThrow(RangeError)
        await expect(store.put(name, value, 1_000)).rejects.toThrow(RangeError)
        await expect(store.lock(name, { ttlMs: 1_000, waitMs: 0 })).rejects.toThrow(RangeError)
      }
      for (const ttlMs of [0, -1, 1.5, NaN, Infinity, 401 * 86_400_000]) {
        await expect(store.put('a', value, ttlMs), `for ${ttlMs} ms`).rejects.toThrow(RangeError)
        await expect(store.putIfAbsent('a', value, ttlMs)).rejects.toThrow(RangeError)
        await expect(store.compareAndSet('a', undefined, value, ttlMs)).rejects.toThrow(RangeError)
        await expect(store.admit('c', 'a', value, ttlMs, { members: 1, bytes: 1e9 })).rejects.toThrow(RangeError)
        await expect(store.touch('c', 'a', ttlMs)).rejects.toThrow(RangeError)
        await expect(store.lock('a', { ttlMs, waitMs: 0 })).rejects.toThrow(RangeError)
      }
      await expect(store.put('a', Buffer.alloc(1024 * 1024 + 1), 1_000)).rejects.toThrow(RangeError)
      expect(await store.get('a')).toBeUndefined()
    })

    it('says that it is up, and after it was closed refuses everything', async () => {
      const { replicas } = await open()
      const [store] = replicas
      await expect.poll(() => store.health(), { timeout: 10_000 }).toMatchObject({ isUp: true, detail: undefined })
      await store.close()
      expect(store.health().isUp).toBe(false)
      const refused = store.get('a')
      await expect(refused).rejects.toThrow(StoreError)
      await expect(refused).rejects.toMatchObject({ kind: 'unavailable' })
      await expect(store.lock('a', { ttlMs: 1_000, waitMs: 0 })).rejects.toMatchObject({ kind: 'unavailable' })
      await expect(store.publish('a', 'text')).rejects.toMatchObject({ kind: 'unavailable' })
    })
  })

  describe('messages', () => {
    const open = useWorlds(maker)

    it('reach every listener of the channel on every replica, the sender’s own too', async () => {
      const { replicas } = await open()
      const heard: string[] = []
      const listen = (name: string, store = replicas[0], channel = 'news') =>
        store.subscribe(channel, { onMessage: (text) => heard.push(`${name} ${text}`), onGap: () => undefined })
      listen('first')
      listen('second', replicas[1])
      listen('other', replicas[0], 'other')
      const closed = listen('closed')
      closed.close()
      closed.close()
      await expect
        .poll(
          async () => {
            await replicas[0].publish('news', 'one')
            return [...new Set(heard)].toSorted()
          },
          { timeout: 10_000 },
        )
        .toEqual(['first one', 'second one'])
    })

    it('a listener that throws keeps the others from nothing', async () => {
      const { replicas } = await open()
      const heard: string[] = []
      replicas[0].subscribe('news', {
        onMessage() {
          throw new Error('planted')
        },
        onGap: () => undefined,
      })
      replicas[0].subscribe('news', { onMessage: (text) => heard.push(text), onGap: () => undefined })
      await expect
        .poll(
          async () => {
            await replicas[1].publish('news', 'one')
            return heard.length
          },
          { timeout: 10_000 },
        )
        .toBeGreaterThan(0)
    })
  })
}
