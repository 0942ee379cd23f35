import type { Clock } from '../core/index.ts'

export type RemovalReason = 'expired' | 'capacity' | 'replaced' | 'deleted'

/** What can be kept: something that knows its end (milliseconds since the epoch). */
export interface Expiring {
  readonly endMs: number
}

export interface ExpiringLruOptions<E> {
  readonly clock: Clock
  /** At most this many entries; the least recently used one goes first. */
  readonly maxEntries: number
  /** Together with `weightOf`: at most this much weight; what is heavier than all of it is not kept. */
  readonly maxWeight?: number
  readonly weightOf?: (entry: E) => number
  /** Called after an entry has left, for indexes beside the cache. */
  readonly onRemove?: (key: string, entry: E, reason: RemovalReason) => void
}

export interface ExpiringLru<E> {
  readonly size: number
  /** The live entry, now the most recently used; an expired one is removed and not given out. */
  get(key: string): E | undefined
  /** The live entry, without counting as use. */
  peek(key: string): E | undefined
  /** Keeps an entry until its end; one whose end is past, or for which there is no room, is not kept. */
  set(key: string, entry: E): void
  delete(key: string): boolean
  clear(): void
  /** Removes what has ended and nobody asked for since. Takes time in proportion to the size. */
  sweep(): void
  /** Live entries, least recently used first. Entries may be deleted while it runs. */
  entries(): IterableIterator<[key: string, entry: E]>
}

/**
 * A bounded cache of entries that carry their own end, kept as they are, so that an entry costs nothing but itself and
 * its place in one map. All operations take constant time, `entries` aside.
 */
export function createExpiringLru<E extends Expiring>(options: ExpiringLruOptions<E>): ExpiringLru<E> {
  const { clock, maxEntries, onRemove } = options
  const maxWeight = options.maxWeight ?? Infinity
  const weightOf = options.weightOf ?? (() => 0)
  // A Map iterates in insertion order, so re-inserting on use keeps the least recently used one first.
  const kept = new Map<string, E>()
  let weight = 0
  let newest: string | undefined

  const remove = (key: string, entry: E, reason: RemovalReason) => {
    kept.delete(key)
    weight -= weightOf(entry)
    onRemove?.(key, entry, reason)
  }

  const live = (key: string): E | undefined => {
    const entry = kept.get(key)
    if (entry === undefined) return undefined
    if (clock.now() < entry.endMs) return entry
    remove(key, entry, 'expired')
    return undefined
  }

  const makeRoom = () => {
    for (const [key, entry] of kept) {
      if (kept.size <= maxEntries && weight <= maxWeight) return
      remove(key, entry, clock.now() < entry.endMs ? 'capacity' : 'expired')
    }
  }

  return {
    get size() {
      return kept.size
    },
    get(key) {
      const entry = live(key)
      if (entry === undefined) return undefined
      if (newest !== key) {
        kept.delete(key)
        kept.set(key, entry)
        newest = key
      }
      return entry
    },
    peek: live,
    set(key, entry) {
      const old = kept.get(key)
      if (old !== undefined) remove(key, old, 'replaced')
      if (clock.now() >= entry.endMs || weightOf(entry) > maxWeight || maxEntries < 1) return
      kept.set(key, entry)
      weight += weightOf(entry)
      newest = key
      makeRoom()
    },
    delete(key) {
      const entry = kept.get(key)
      if (entry === undefined) return false
      remove(key, entry, 'deleted')
      return true
    },
    clear() {
      for (const [key, entry] of kept) remove(key, entry, 'deleted')
    },
    sweep() {
      for (const [key, entry] of kept) if (clock.now() >= entry.endMs) remove(key, entry, 'expired')
    },
    *entries() {
      for (const pair of kept) if (clock.now() < pair[1].endMs) yield pair
    },
  }
}
