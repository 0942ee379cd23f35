import { LRUCache } from 'lru-cache'
import type { Clock } from '../core/index.ts'

/**
 * Additions per sweep, besides a quarter of the entries: expired entries do not stay in memory, at constant cost per
 * addition.
 */
const ADDITIONS_PER_SWEEP = 256

export type RemovalReason = 'expired' | 'capacity' | 'replaced' | 'deleted'

export interface TtlLruOptions<V> {
  readonly clock: Clock<number>
  /** Maximum number of entries; the least recently used is evicted first. */
  readonly maxEntries: number
  /** With `weigh`: maximum total weight, such as bytes. A heavier value is not stored. */
  readonly maxWeight?: number
  readonly weigh?: (value: V, key: string) => number
  /** Called after an entry was removed, for additional indexes. */
  readonly onRemove?: (key: string, value: V, reason: RemovalReason) => void
}

export interface TtlLru<V> {
  readonly size: number
  /** Total of all entries; their number without `weigh`. */
  readonly weight: number
  /** The live value, marked as used; an expired one is removed. */
  get(key: string): V | undefined
  /** The live value, without marking it. */
  peek(key: string): V | undefined
  /** Stores a value until `expiresAtMs`; false if expired or too heavy. */
  set(key: string, value: V, expiresAtMs: number): boolean
  delete(key: string): boolean
  clear(): void
  /** Live entries at the time of the call, least recently used first. Entries may be deleted during iteration. */
  entries(): IterableIterator<[key: string, value: V]>
}

interface Kept<V> {
  readonly value: V
  readonly endMs: number
}

/**
 * A limited cache with an expiry per entry, on `lru-cache`, which keeps order and limits; the given clock decides on
 * expiry. All operations take constant time, except `clear` and `entries`; additions sweep expired entries at
 * intervals.
 */
export function createTtlLru<V>(options: TtlLruOptions<V>): TtlLru<V> {
  const { clock, maxEntries, maxWeight = Number.MAX_SAFE_INTEGER, weigh, onRemove } = options
  /** Why an entry is being deleted. */
  let reason: RemovalReason = 'deleted'
  let additions = 0

  const kept = new LRUCache<string, Kept<V>>({
    maxSize: weigh === undefined ? Math.max(maxEntries, 1) : maxWeight,
    sizeCalculation: weigh === undefined ? () => 1 : ({ value }, key) => Math.max(Math.ceil(weigh(value, key)), 1),
    ...(onRemove === undefined
      ? {}
      : {
          // Called afterwards, so that the listener finds the cache without the entry.
          disposeAfter({ value, endMs }, key, cause) {
            if (cause === 'set') onRemove(key, value, 'replaced')
            else if (cause === 'delete') onRemove(key, value, reason)
            else onRemove(key, value, clock.now() < endMs ? 'capacity' : 'expired')
          },
        }),
  })

  const remove = (key: string, why: RemovalReason): boolean => {
    reason = why
    const wasThere = kept.delete(key)
    reason = 'deleted'
    return wasThere
  }

  /** Removes expired entries. */
  const sweep = (): void => {
    additions = 0
    for (const [key, { endMs }] of allOf(kept)) if (clock.now() >= endMs) remove(key, 'expired')
  }

  const live = (key: string, entry: Kept<V> | undefined): V | undefined => {
    if (entry === undefined) return undefined
    if (clock.now() < entry.endMs) return entry.value
    remove(key, 'expired')
    return undefined
  }

  return {
    get size() {
      return kept.size
    },
    get weight() {
      return kept.calculatedSize
    },
    get: (key) => live(key, kept.get(key)),
    peek: (key) => live(key, kept.peek(key)),
    set(key, value, endMs) {
      if (clock.now() >= endMs || maxEntries < 1) {
        remove(key, 'replaced')
        return false
      }
      additions += 1
      if (additions >= Math.max(ADDITIONS_PER_SWEEP, kept.size / 4)) sweep()
      kept.set(key, { value, endMs })
      while (kept.size > maxEntries) kept.pop()
      return kept.has(key)
    },
    delete: (key) => remove(key, 'deleted'),
    clear: () => kept.clear(),
    *entries() {
      for (const [key, { value, endMs }] of allOf(kept)) if (clock.now() < endMs) yield [key, value]
    },
  }
}

/** A snapshot: the library's iteration does not allow deleting the current entry. */
function allOf<V>(kept: LRUCache<string, Kept<V>>): [key: string, entry: Kept<V>][] {
  const all: [string, Kept<V>][] = []
  kept.rforEach((entry, key) => all.push([key, entry]))
  return all
}
