import type { Clock } from '../core/index.ts'

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
  readonly expiresAtMs: number
  readonly weight: number
}

/** A bounded cache in which each entry has its own end. All operations take constant time, `entries` aside. */
export function createTtlLru<V>(options: TtlLruOptions<V>): TtlLru<V> {
  const { clock, maxEntries, onRemove } = options
  const maxWeight = options.maxWeight ?? Infinity
  // A Map iterates in insertion order, so re-inserting on use keeps the least recently used one first.
  const slots = new Map<string, Slot<V>>()
  let weight = 0
  let newest: string | undefined

  const remove = (key: string, slot: Slot<V>, reason: RemovalReason) => {
    slots.delete(key)
    weight -= slot.weight
    onRemove?.(key, slot.value, reason)
  }

  const live = (key: string): Slot<V> | undefined => {
    const slot = slots.get(key)
    if (slot === undefined) return undefined
    if (clock.now() < slot.expiresAtMs) return slot
    remove(key, slot, 'expired')
    return undefined
  }

  const makeRoom = () => {
    for (const [key, slot] of slots) {
      if (slots.size <= maxEntries && weight <= maxWeight) return
      remove(key, slot, clock.now() < slot.expiresAtMs ? 'capacity' : 'expired')
    }
  }

  return {
    get size() {
      return slots.size
    },
    get(key) {
      const slot = live(key)
      if (slot === undefined) return undefined
      if (newest !== key) {
        slots.delete(key)
        slots.set(key, slot)
        newest = key
      }
      return slot.value
    },
    peek: (key) => live(key)?.value,
    set(key, value, expiresAtMs) {
      const old = slots.get(key)
      if (old !== undefined) remove(key, old, 'replaced')
      if (clock.now() >= expiresAtMs) return
      const slot = { value, expiresAtMs, weight: options.weigh?.(value, key) ?? 0 }
      if (slot.weight > maxWeight || maxEntries < 1) return
      slots.set(key, slot)
      weight += slot.weight
      newest = key
      makeRoom()
    },
    delete(key) {
      const slot = slots.get(key)
      if (slot === undefined) return false
      remove(key, slot, 'deleted')
      return true
    },
    clear() {
      for (const [key, slot] of slots) remove(key, slot, 'deleted')
    },
    *entries() {
      for (const [key, slot] of slots) {
        if (clock.now() < slot.expiresAtMs) yield [key, slot.value]
      }
    },
  }
}
