import type { Clock, Log } from '../core/index.ts'
import { createListeners } from './listeners.ts'
import { type CollectionMember, createMemoryCollections } from './memory-collections.ts'
import { createMemoryEntries, type MemoryEntry } from './memory-entries.ts'
import { createMemoryLocks } from './memory-locks.ts'
import { check, type KeptValue, type Store, StoreError } from './port.ts'

export interface MemoryStoreOptions {
  readonly clock: Clock
  readonly log: Log
  /** Total of keys, values and 200 bytes per entry. Default 512 MiB; a full store rejects writes with `overloaded`. */
  readonly maxBytes?: number
}

/** The store with its size for metrics. */
export interface MemoryStore extends Store {
  readonly entries: number
  readonly bytes: number
  snapshot(): Snapshot
  /** Adds the content of a snapshot; for an empty store. */
  restore(snapshot: Snapshot): void
}

/** The content of a memory store, without locks and subscriptions. */
export interface Snapshot {
  readonly entries: readonly (readonly [key: string, entry: MemoryEntry])[]
  readonly members: readonly CollectionMember[]
}

/** Creates a store in the memory of this process (authserver.md §7): for one replica, lost at exit. */
export function createMemoryStore(options: MemoryStoreOptions): MemoryStore {
  const entries = createMemoryEntries(options.clock, options.maxBytes ?? 512 * 1024 * 1024)
  const collections = createMemoryCollections(entries)
  const locks = createMemoryLocks()
  const listeners = createListeners({
    onError: (error) => {
      const name = error instanceof Error ? error.name : 'unknown'
      options.log.error({ error: name }, 'store listener failed')
    },
  })
  let isClosed = false

  const stored = (entry: MemoryEntry | undefined): KeptValue | undefined =>
    entry && {
      value: Buffer.from(entry.bytes, 'latin1'),
      version: String(entry.version),
      leftMs: entry.endMs - options.clock.now(),
    }

  /** Runs synchronously, so that no other operation interferes. */
  const atomically = async <T>(names: readonly string[], step: () => T): Promise<T> => {
    if (isClosed) throw new StoreError('unavailable')
    for (const name of names) check.name(name)
    return step()
  }

  const write = (key: string, value: Buffer, ttlMs: number, fence = 0) => {
    check.value(value)
    check.ttl(ttlMs)
    entries.set(key, value, ttlMs, fence)
  }

  return {
    get entries() {
      return entries.count
    },
    get bytes() {
      return entries.bytes
    },
    get: (key) => atomically([key], () => stored(entries.get(key))),
    put: (key, value, ttlMs) => atomically([key], () => write(key, value, ttlMs)),
    putIfAbsent: (key, value, ttlMs) =>
      atomically([key], () => {
        if (entries.get(key) !== undefined) return false
        write(key, value, ttlMs)
        return true
      }),
    take: (key) =>
      atomically([key], () => {
        const found = stored(entries.get(key))
        entries.delete(key)
        return found
      }),
    compareAndSet: (key, version, value, ttlMs, fence) =>
      atomically([key], () => {
        const old = entries.get(key)
        const oldVersion = old === undefined ? undefined : String(old.version)
        const oldFence = old?.fence ?? 0
        if (oldVersion !== version || (fence !== undefined && fence < oldFence)) return false
        write(key, value, ttlMs, fence ?? oldFence)
        return true
      }),
    delete: (...keys) =>
      atomically(keys, () => {
        for (const key of keys) entries.delete(key)
      }),
    admit: (collection, key, value, ttlMs, bound) =>
      atomically([collection, key], () => {
        const { isThere, evicted } = collections.makeRoom(collection, key, value.length, bound)
        if (isThere) {
          write(key, value, ttlMs)
          collections.add(collection, key, value.length)
        }
        return { outcome: isThere ? 'added' : 'full', evicted, ...collections.held(collection) }
      }),
    touch: (collection, key, ttlMs) =>
      atomically([collection, key], () => {
        check.ttl(ttlMs)
        const entry = entries.get(key)
        if (entry === undefined) return collections.remove(collection, key)
        entry.endMs = options.clock.now() + ttlMs
        collections.touch(collection, key)
      }),
    remove: (collection, key) =>
      atomically([collection, key], () => {
        entries.delete(key)
        collections.remove(collection, key)
      }),
    members: (collection, offset, limit) =>
      atomically([collection], () => collections.keys(collection).slice(offset, offset + limit)),
    async lock(name, { ttlMs, waitMs }) {
      await atomically([name], () => check.ttl(ttlMs))
      return locks.acquire(name, waitMs)
    },
    async getOrLock(key, staleVersion, ttlMs) {
      const found = await atomically([key], () => {
        check.ttl(ttlMs)
        const value = stored(entries.get(key))
        return value?.version === staleVersion ? undefined : value
      })
      if (found !== undefined) return { kind: 'value', stored: found }
      const held = await locks.acquire(key, 0)
      if (held === undefined) return { kind: 'busy' }
      const finish = async (value: Buffer, valueTtlMs: number): Promise<void> => {
        try {
          await atomically([key], () => write(key, value, valueTtlMs))
        } finally {
          await held.release()
        }
      }
      return { kind: 'lock', held: Object.assign(held, { finish }) }
    },
    async publish(channel, message) {
      await atomically([channel], () => undefined)
      return listeners.message(channel, message)
    },
    subscribe(channel, listener) {
      check.name(channel)
      return { isActive: true, ...listeners.add(channel, listener) }
    },
    health() {
      const detail = isClosed ? 'closed' : entries.isFull ? 'its memory is full' : undefined
      return { isUp: detail === undefined, kind: 'memory', detail }
    },
    snapshot: () => ({ entries: [...entries.all()], members: collections.all() }),
    restore(snapshot) {
      for (const [key, entry] of snapshot.entries) entries.restore(key, entry)
      for (const [collection, key, isTouched] of snapshot.members) {
        collections.add(collection, key, entries.get(key)?.bytes.length ?? 0)
        if (isTouched) collections.touch(collection, key)
      }
    },
    close() {
      isClosed = true
      return Promise.resolve()
    },
  }
}
