import { LRUCache } from 'lru-cache'
import type { Clock } from '../core/index.ts'

/**
 * So many additions, and a quarter of the entries, pay for one sweep: what nobody asks for any more does not stay in memory
 * after its end, and however many there are, an addition costs the same.
 */
const ADDITIONS_PER_SWEEP = 256

export type RemovalReason = 'expired' | 'capacity' | 'replaced' | 'deleted'

export interface TtlLruOptions<V> {
  readonly clock: Clock
  /** At most this many entries; the least recently used one goes first. */
  readonly maxEntries: number
  /** Together with `weigh`: at most this much weight (say, bytes); a value heavier than all of it is not kept. */
  readonly maxWeight?: number
  readonly weigh?: (value: V, key: string) => number
  /** Called after an entry has left, for indexes beside the cache. */
  readonly onRemove?: (key: string, value: V, reason: RemovalReason) => void
}

export interface TtlLru<V> {
  readonly size: number
  /** Of all entries together; their number where nothing is weighed. */
  readonly weight: number
  /** The live value, now the most recently used; an expired one is removed and not given out. */
  get(key: string): V | undefined
  /** The live value, without counting as use. */
  peek(key: string): V | undefined
  /** Keeps a value until `expiresAtMs` (milliseconds since the epoch); false for one that is already past or too heavy. */
  set(key: string, value: V, expiresAtMs: number): boolean
  delete(key: string): boolean
  clear(): void
  /** Live entries as they are at its start, least recently used first. Entries may be deleted while it runs. */
  entries(): IterableIterator<[key: string, value: V]>
}

interface Kept<V> {
  readonly value: V
  readonly endMs: number
}

/**
 * A bounded cache in which each entry has its own end, over `lru-cache`: that keeps order and bounds, without room taken
 * ahead; ends are those of the clock that is handed in. All operations take constant time, `clear` and
 * `entries` aside; of what has ended an addition now and then pays for the removal.
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
          // Afterwards, so that whoever hears of it finds the cache without the entry.
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

  /** Removes what has ended and nobody asked for since. */
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

/** As they are now: the library's own iteration does not bear that the entry that it is at is deleted. */
function allOf<V>(kept: LRUCache<string, Kept<V>>): [key: string, entry: Kept<V>][] {
  const all: [string, Kept<V>][] = []
  kept.rforEach((entry, key) => all.push([key, entry]))
  return all
}
