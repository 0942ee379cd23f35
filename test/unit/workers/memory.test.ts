import { describe, expect, it } from 'vitest'
import { createMemoryOfWorkers } from '../../../src/workers/memory-of-workers.ts'
import { createMemoryOverChannel } from '../../../src/workers/memory-over-channel.ts'
import { createPeer } from '../../../src/workers/peer.ts'
import type { Store } from '../../../src/storage/index.ts'
import { storeSuite } from '../../support/storage/suite.ts'
import { createManualClock, createRecordingLog } from '../../support/ports.ts'
import { openChannels } from '../../support/workers/channels.ts'

/** Two workers and the memory that their supervisor keeps. */
function open(maxBytes?: number) {
  const clock = createManualClock()
  const log = createRecordingLog()
  const memory = createMemoryOfWorkers({ clock, log, ...(maxBytes === undefined ? {} : { maxBytes }) })
  const worker = () => {
    const { ends, cut } = openChannels()
    const part = memory.partOf((id, message) => void peer.ask('published', [id, message]))
    const peer = createPeer<{ published(id: number, message: string): void }>(ends[0], part.methods)
    ends[0].onClose(() => part.release())
    const stores = createMemoryOverChannel(
      createPeer(ends[1], { published: (id: number, message: string) => stores.onMessage(id, message) }),
      log,
    )
    return { stores, die: cut }
  }
  return { clock, one: worker(), other: worker() }
}

storeSuite({
  name: 'the memory of a supervisor, seen by two workers',
  open() {
    const { clock, one, other } = open()
    return Promise.resolve({
      replicas: [one.stores.open('scope'), other.stores.open('scope')] as const,
      async advance(ms) {
        clock.advance(ms)
        await new Promise((resolve) => setImmediate(resolve))
      },
      kill: () => other.die(),
      close: () => Promise.resolve(),
    })
  },
})

describe('the memory of a supervisor', () => {
  it('is another one for each scope', async () => {
    const { one, other } = open()
    await one.stores.open('a').put('key', Buffer.from('1'), 1_000)
    expect(await other.stores.open('b').get('key')).toBeUndefined()
    expect((await other.stores.open('a').get('key'))?.value.toString()).toBe('1')
  })

  it('frees the locks of a worker that died, also one that it was still waiting for', async () => {
    const { one, other } = open()
    const [a, b] = [one.stores.open('s'), other.stores.open('s')]
    const options = { ttlMs: 60_000, waitMs: 0 }
    const held = await b.lock('held', options)
    expect(held?.isHeld).toBe(true)
    const before = await a.lock('wanted', options)
    const waiting = b.lock('wanted', { ttlMs: 60_000, waitMs: 60_000 })
    other.die()
    await expect(waiting).rejects.toMatchObject({ name: 'StoreError', kind: 'unavailable' })
    expect(await a.lock('held', options)).toBeDefined()
    await before?.release()
    expect(await a.lock('wanted', { ttlMs: 60_000, waitMs: 1_000 })).toBeDefined()
  })

  it('reports that it is full until memory is free again', async () => {
    const { clock, one } = open(10_000)
    const store = one.stores.open('s')
    await store.put('a', Buffer.alloc(9_000), 1_000)
    await expect(store.put('b', Buffer.alloc(9_000), 1_000)).rejects.toMatchObject({ kind: 'overloaded' })
    expect(store.health()).toEqual({ isUp: false, kind: 'memory', detail: 'its memory is full' })
    clock.advance(1_000)
    await store.put('b', Buffer.alloc(9_000), 1_000)
    expect(store.health()).toMatchObject({ isUp: true })
  })

  it('refuses names and values as every store does, and says so of a worker whose supervisor has gone', async () => {
    const { one } = open()
    const store: Store = one.stores.open('s')
    await expect(store.get('no spaces')).rejects.toBeInstanceOf(RangeError)
    one.die()
    await expect(store.get('key')).rejects.toMatchObject({ kind: 'unavailable' })
    expect(store.health()).toMatchObject({ kind: 'memory', isUp: false })
  })
})
