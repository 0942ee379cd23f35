import { hashKey } from '../cache/index.ts'
import { Failure } from '../core/index.ts'
import { type Seal, StoreError, type Store } from '../storage/index.ts'
import type { UpstreamRegistrations } from '../upstreams/index.ts'
import { storeFailure } from './store-failure.ts'

/** Retention of an upstream registration after its last use. */
const KEPT_MS = 90 * 24 * 3_600_000
/** The last use is updated once a day. */
const NOTED_MS = 24 * 3_600_000
/** A single replica registers while the others wait. */
const LOCK = { ttlMs: 15_000, waitMs: 20_000 }

/** Stores the registrations at upstreams, sealed and shared by all replicas. */
export function createUpstreamRegistrations(store: Store, seal: Seal): UpstreamRegistrations {
  const read = async (key: string): Promise<Buffer | undefined> => {
    const stored = await store.get(key)
    if (stored === undefined) return undefined
    try {
      const opened = await seal.open(key, stored.value)
      if (opened === undefined) return undefined
      if (!opened.isCurrent || stored.leftMs < KEPT_MS - NOTED_MS)
        await store.compareAndSet(key, stored.version, seal.seal(key, opened.plain), KEPT_MS)
      return opened.plain
    } catch (error) {
      // The sealing secret was removed.
      if (error instanceof StoreError && error.kind === 'unknown_key') return undefined
      throw error
    }
  }
  const keyOf = (id: unknown): string => `upstream-client:${hashKey([JSON.stringify(id)])}`

  return {
    async obtain(id, isUsable, make) {
      const key = keyOf(id)
      try {
        const found = await read(key)
        if (found !== undefined && isUsable(found)) return found
        const lock = await store.lock(key, LOCK)
        if (lock === undefined)
          throw new Failure('overloaded', { detail: 'another replica registers at the upstream', retryAfterSeconds: 1 })
        try {
          const again = await read(key)
          if (again !== undefined && isUsable(again)) return again
          const made = await make()
          await store.put(key, seal.seal(key, made), KEPT_MS)
          return made
        } finally {
          await lock.release()
        }
      } catch (error) {
        throw storeFailure(error)
      }
    },
    async forget(id, value) {
      const key = keyOf(id)
      try {
        if ((await read(key))?.equals(value) === true) await store.delete(key)
      } catch (error) {
        throw storeFailure(error)
      }
    },
  }
}
