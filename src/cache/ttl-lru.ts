import type { Clock } from '../core/index.ts'
import { createExpiringLru, type RemovalReason } from './expiring-lru.ts'

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
  /** The live value, now the most recently used; an expired one is removed and not given out. */
  get(key: string): V | undefined
  /** The live value, without counting as use. */
  peek(key: string): V | undefined
  /** Keeps a value until `expiresAtMs` (milliseconds since the epoch); one that is already past is not kept. */
  set(key: string, value: V, expiresAtMs: number): void
  delete(key: string): boolean
  clear(): void
  /** Live entries, least recently used first. Entries may be deleted while it runs. */
  entries(): IterableIterator<[key: string, value: V]>
}

interface Slot<V> {
  readonly value: V
  readonly endMs: number
  readonly weight: number
}

/** A bounded cache in which each entry has its own end. All operations take constant time, `entries` aside. */
export function createTtlLru<V>(options: TtlLruOptions<V>): TtlLru<V> {
  const { clock, maxEntries, maxWeight, weigh, onRemove } = options
  const slots = createExpiringLru<Slot<V>>({
    clock,
    maxEntries,
    weightOf: (slot) => slot.weight,
    ...(maxWeight === undefined ? {} : { maxWeight }),
    ...(onRemove === undefined ? {} : { onRemove: (key, slot, reason) => onRemove(key, slot.value, reason) }),
  })
  return {
    get size() {
      return slots.size
    },
    get: (key) => slots.get(key)?.value,
    peek: (key) => slots.peek(key)?.value,
    set: (key, value, endMs) => slots.set(key, { value, endMs, weight: weigh?.(value, key) ?? 0 }),
    delete: (key) => slots.delete(key),
    clear: () => slots.clear(),
    *entries() {
      for (const [key, slot] of slots.entries()) yield [key, slot.value]
    },
  }
}
