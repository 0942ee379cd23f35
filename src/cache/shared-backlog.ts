import { setTimeout as pause } from 'node:timers/promises'
import type { Clock } from '../core/index.ts'
import type { SharedEntry } from './shared-entry.ts'
import { createTtlLru } from './ttl-lru.ts'

const MOST_KEPT = 10_000
/** Batch size, followed by a pause: 200 a second. */
const AT_ONCE = 20
const PAUSE_MS = 100

/** Values fetched while the store was unavailable; shared after its recovery. */
export interface SharedBacklog<V> {
  add(key: string, entry: SharedEntry<V>): void
  /** Uploads in batches, besides new values; drops the rest at the first rejection. */
  handOver(): Promise<void>
  close(): void
}

/** `put` throws the errors of the store. */
export function createSharedBacklog<V>(
  clock: Clock,
  put: (key: string, entry: SharedEntry<V>) => Promise<void>,
): SharedBacklog<V> {
  const kept = createTtlLru<SharedEntry<V>>({ clock, maxEntries: MOST_KEPT })
  let isClosed = false
  let isBusy = false

  const handOver = async () => {
    const late = Array.from(kept.entries())
    for (let some = late.splice(0, AT_ONCE); some.length > 0; some = late.splice(0, AT_ONCE)) {
      if (isClosed) return
      for (const [key] of some) kept.delete(key)
      await Promise.all(some.map(([key, entry]) => put(key, entry)))
      await pause(PAUSE_MS, undefined, { ref: false })
    }
  }

  return {
    add(key, entry) {
      if (!isClosed) kept.set(key, entry, entry.expiresAtMs)
    },
    async handOver() {
      if (isBusy) return
      isBusy = true
      await handOver().catch(() => kept.clear())
      isBusy = false
    },
    close() {
      isClosed = true
    },
  }
}
