import type { Clock } from '../core/index.ts'

export type RemovalReason = 'expired' | 'capacity' | 'replaced' | 'deleted'

export interface TtlLruOptions<V> {
  readonly clock: Clock
  /** At most this many entries; the least recently used one goes first (uses count once half of them are taken). */
  readonly maxEntries: number
  /** Together with `weigh`: at most this much weight (say, bytes); a value heavier than all of it is not kept. */
  readonly maxWeight?: number
  readonly weigh?: (value: V, key: string) => number
  /** Called after an entry has left, for indexes beside the cache. */
  readonly onRemove?: (key: string, value: V, reason: RemovalReason) => void
}

export interface TtlLru<V> {
  readonly size: number
  /** The live value, now the most recently used; an expired one is removed and not given out. */
  get(key: string): V | undefined
  /** The live value, without counting as use. */
  peek(key: string): V | undefined
  /** Keeps a value until `expiresAtMs` (milliseconds since the epoch); false for one that is already past or too heavy. */
  set(key: string, value: V, expiresAtMs: number): boolean
  delete(key: string): boolean
  clear(): void
  /** Removes what has ended and nobody asked for since. Takes time in proportion to the size. */
  sweep(): void
  /** Live entries, least recently used first. Entries may be deleted while it runs. */
  entries(): IterableIterator<[key: string, value: V]>
}

interface Kept<V> {
  readonly value: V
  readonly endMs: number
  /** Absent where nothing is weighed: eight bytes of each entry. */
  readonly weight?: number
}

/** A bounded cache in which each entry has its own end. All operations take constant time, `sweep` and `entries` aside. */
export function createTtlLru<V>(options: TtlLruOptions<V>): TtlLru<V> {
  const { clock, maxEntries, maxWeight = Infinity, weigh, onRemove } = options
  // A Map iterates in insertion order, so re-inserting on use keeps the least recently used one first.
  const kept = new Map<string, Kept<V>>()
  let weight = 0
  let newest: string | undefined

  const remove = (key: string, entry: Kept<V>, reason: RemovalReason) => {
    kept.delete(key)
    weight -= entry.weight ?? 0
    onRemove?.(key, entry.value, reason)
  }

  const live = (key: string): Kept<V> | undefined => {
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
      // While there is room for as much again nobody's place is near its end: the order matters, and is kept, from half on.
      if (newest !== key && (kept.size * 2 >= maxEntries || weight * 2 >= maxWeight)) {
        kept.delete(key)
        kept.set(key, entry)
        newest = key
      }
      return entry.value
    },
    peek: (key) => live(key)?.value,
    set(key, value, endMs) {
      const old = kept.get(key)
      if (old !== undefined) remove(key, old, 'replaced')
      const entry: Kept<V> = weigh === undefined ? { value, endMs } : { value, endMs, weight: weigh(value, key) }
      const { weight: own = 0 } = entry
      if (clock.now() >= endMs || own > maxWeight || maxEntries < 1) return false
      kept.set(key, entry)
      weight += own
      newest = key
      makeRoom()
      return true
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
      for (const [key, entry] of kept) if (clock.now() < entry.endMs) yield [key, entry.value]
    },
  }
}
