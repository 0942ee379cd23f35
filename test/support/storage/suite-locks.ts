import { describe, expect, it } from 'vitest'
import type { StoreMaker } from './suite.ts'
import { atOnce, bytes, useWorlds } from './worlds.ts'

export function lockTests(maker: StoreMaker): void {
  describe('locks', () => {
    const open = useWorlds(maker)

    it('has one holder at a time, each with a higher fence than the one before', async () => {
      const { replicas } = await open()
      const fences: number[] = []
      let holders = 0
      await atOnce(20, async (index) => {
        const held = await replicas[index % 2 === 0 ? 0 : 1].lock('a', { ttlMs: 5_000, waitMs: 15_000 })
        holders += 1
        expect(held?.isHeld).toBe(true)
        fences.push(held?.fence ?? 0)
        await new Promise((resolve) => setImmediate(resolve))
        expect(holders).toBe(1)
        holders -= 1
        await held?.release()
        expect(held?.isHeld).toBe(false)
      })
      expect(fences).toHaveLength(20)
      expect(fences).toEqual([...new Set(fences)].toSorted((a, b) => a - b))
    })

    it('excludes others until it is released, and other names are other locks', async () => {
      const { replicas } = await open()
      const held = await replicas[0].lock('a', { ttlMs: 5_000, waitMs: 0 })
      expect(held).toBeDefined()
      expect(await replicas[0].lock('a', { ttlMs: 5_000, waitMs: 0 })).toBeUndefined()
      expect(await replicas[1].lock('a', { ttlMs: 5_000, waitMs: 50 })).toBeUndefined()
      const other = await replicas[1].lock('b', { ttlMs: 5_000, waitMs: 0 })
      expect(other).toBeDefined()
      await held?.release()
      await held?.release()
      const next = await replicas[1].lock('a', { ttlMs: 5_000, waitMs: 0 })
      expect(next).toBeDefined()
      await held?.release()
      expect(await replicas[0].lock('a', { ttlMs: 5_000, waitMs: 0 }), 'released by a previous holder').toBeUndefined()
      await next?.release()
      await other?.release()
    })

    it('is granted to one of many if a value is missing or stale; all others wait', async () => {
      const { replicas } = await open()
      const ask = (staleVersion?: string) =>
        atOnce(20, (index) => replicas[index % 2 === 0 ? 0 : 1].getOrLock('a', staleVersion, 5_000))
      const first = await ask()
      expect(first.map(({ kind }) => kind).toSorted()).toEqual([...Array<string>(19).fill('busy'), 'lock'])
      const winner = first.find((one) => one.kind === 'lock')
      expect(await replicas[0].lock('a', { ttlMs: 5_000, waitMs: 0 }), 'it is the lock of that name').toBeUndefined()
      await replicas[0].put('a', bytes('made'), 60_000)
      await winner?.held.release()
      const second = await ask()
      expect(second.map((one) => (one.kind === 'value' ? one.stored.value.toString() : one.kind))).toEqual(
        Array<string>(20).fill('made'),
      )
      const version = (await replicas[1].get('a'))?.version
      const third = await ask(version)
      expect(third.filter(({ kind }) => kind === 'lock')).toHaveLength(1)
      expect(third.filter(({ kind }) => kind === 'busy')).toHaveLength(19)
      await replicas[1].put('a', bytes('renewed'), 60_000)
      expect(await replicas[0].getOrLock('a', version, 5_000)).toMatchObject({ stored: { value: bytes('renewed') } })
      for (const one of third) if (one.kind === 'lock') await one.held.release()
    })

    it('is released with the value of its holder, in one step', async () => {
      const { replicas } = await open()
      const lock = async () => {
        const claim = await replicas[0].getOrLock('a', undefined, 5_000)
        return claim.kind === 'lock' ? claim.held : undefined
      }
      const held = await lock()
      await held?.finish(bytes('made'), 60_000)
      expect(held?.isHeld ?? true, 'it was released').toBe(false)
      expect(await replicas[1].getOrLock('a', undefined, 5_000)).toMatchObject({ stored: { value: bytes('made') } })
      const free = await replicas[1].lock('a', { ttlMs: 5_000, waitMs: 0 })
      expect(free?.fence).toBeGreaterThan(held?.fence ?? Infinity)
      await free?.release()
      await replicas[0].delete('a')
      const refused = await lock()
      await expect(refused?.finish(bytes('made'), 0)).rejects.toBeInstanceOf(RangeError)
      await refused?.release()
      const again = await replicas[1].lock('a', { ttlMs: 5_000, waitMs: 5_000 })
      expect(again, 'released in any case').toBeDefined()
      await again?.release()
      expect(await replicas[0].get('a')).toBeUndefined()
    })

    it('is granted to a waiter as soon as it is released', async () => {
      const { replicas } = await open()
      const held = await replicas[0].lock('a', { ttlMs: 30_000, waitMs: 0 })
      const waiting = replicas[1].lock('a', { ttlMs: 30_000, waitMs: 15_000 })
      await held?.release()
      const next = await waiting
      expect(next?.fence).toBeGreaterThan(held?.fence ?? Infinity)
      await next?.release()
    })

    it('lasts longer than its time to live as long as its owner lives', async () => {
      const { replicas, advance } = await open()
      // A busy machine may keep its owner from renewing it for half of that.
      const held = await replicas[0].lock('a', { ttlMs: 1_000, waitMs: 0 })
      await advance(2_500)
      expect(held?.isHeld).toBe(true)
      expect(await replicas[1].lock('a', { ttlMs: 1_000, waitMs: 0 })).toBeUndefined()
      await held?.release()
    })
  })
}

/** For stores whose replicas can die: `kill` must be there. */
export function ownerDeathTests(maker: StoreMaker): void {
  describe('locks of the dead', () => {
    const open = useWorlds(maker)

    it('end with their owner: who waits gets one after the time to live, with a higher fence', async () => {
      const { replicas, kill } = await open()
      const held = await replicas[1].lock('a', { ttlMs: 300, waitMs: 0 })
      kill?.()
      expect(await replicas[0].lock('a', { ttlMs: 300, waitMs: 0 }), 'at once').toBeUndefined()
      const next = await replicas[0].lock('a', { ttlMs: 300, waitMs: 15_000 })
      expect(next?.fence).toBeGreaterThan(held?.fence ?? Infinity)
      expect(held?.isHeld).toBe(false)
      await next?.release()
    })
  })
}
