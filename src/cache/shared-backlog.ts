import { setTimeout as pause } from 'node:timers/promises'
import type { Clock } from '../core/index.ts'
import type { SharedEntry } from './shared-entry.ts'
import { createTtlLru } from './ttl-lru.ts'

const MOST_KEPT = 10_000
/** So many at once, and a pause after them: 200 a second. */
const AT_ONCE = 20
const PAUSE_MS = 100

/** Values that were made while the store was away; they are shared when it is back. */
export interface SharedBacklog<V> {
  add(key: string, entry: SharedEntry<V>): void
  /** Hands over a few at a time, while new ones are shared already; what is left at the first refusal is dropped. */
  handOver(): Promise<void>
  close(): void
}

/** `put` throws what the store throws. */
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
