import { describe, expect, it } from 'vitest'
import { createMemoryStore } from '../../../src/storage/index.ts'
import { createManualClock, createRecordingLog } from '../../support/ports.ts'
import { storeSuite } from '../../support/storage/suite.ts'
import { bytes } from '../../support/storage/worlds.ts'

function createWorld(maxBytes?: number) {
  const clock = createManualClock()
  const log = createRecordingLog()
  const store = createMemoryStore({ clock, log, ...(maxBytes === undefined ? {} : { maxBytes }) })
  return { clock, log, store }
}

storeSuite({
  name: 'the memory store',
  open() {
    const { clock, store } = createWorld()
    return Promise.resolve({
      replicas: [store, store],
      advance(ms) {
        clock.advance(ms)
        return Promise.resolve()
      },
      close: () => store.close(),
    })
  },
})

describe('the bound of the memory store', () => {
  it('rejects values beyond its limit, and keeps stored ones', async () => {
    const { store } = createWorld(10_000)
    const fits = Buffer.alloc(4_700)
    await store.put('a', fits, 60_000)
    await store.put('b', fits, 60_000)
    await expect(store.put('c', fits, 60_000)).rejects.toMatchObject({ kind: 'overloaded' })
    await expect(store.put('a', Buffer.alloc(9_000), 60_000)).rejects.toMatchObject({ kind: 'overloaded' })
    expect((await store.get('a'))?.value).toHaveLength(4_700)
    await store.put('a', fits, 60_000)
    await store.delete('b')
    await store.put('c', fits, 60_000)
    expect(store.bytes).toBeLessThanOrEqual(10_000)
    expect(store.entries).toBe(2)
  })

  it('frees the memory of expired values that are never read', async () => {
    const { clock, store } = createWorld(100_000)
    const value = Buffer.alloc(700)
    for (let index = 0; index < 100; index += 1) await store.put(`short${index}`, value, 1_000)
    await expect(store.put('long', Buffer.alloc(50_000), 60_000)).rejects.toMatchObject({ kind: 'overloaded' })
    clock.advance(1_000)
    await store.put('long', Buffer.alloc(50_000), 60_000)
    expect(store.entries).toBe(1)
  })

  it('sweeps a little with each write', async () => {
    const { clock, store } = createWorld()
    for (let index = 0; index < 1_000; index += 1) await store.put(`short${index}`, bytes('1'), 1_000)
    clock.advance(1_000)
    for (let index = 0; index < 600; index += 1) await store.put('one', bytes('1'), 60_000)
    expect(store.entries).toBe(1)
    expect(store.bytes).toBe(204)
  })

  it('says in the log that a listener failed, by its name only', async () => {
    const { log, store } = createWorld()
    store.subscribe('news', {
      onMessage() {
        throw new TypeError('text of the error')
      },
      onGap: () => undefined,
    })
    await store.publish('news', 'a message')
    expect(log.lines.join('\n')).toContain('TypeError')
    expect(log.lines.join('\n')).not.toMatch(/text of the error|a message/)
  })
})
