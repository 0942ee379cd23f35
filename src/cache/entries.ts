import { hash } from 'node:crypto'
import type { Clock, EpochMs } from '../core/index.ts'
import type { CacheSlot, Ownership } from './slot.ts'
import { createTtlLru } from './ttl-lru.ts'

/** Approximate overhead of an entry. */
export const ENTRY_BYTES = 700

/** A live credential. Holds only names of the caller, so that an entry keeps no claims in memory. */
export interface Entry<V> extends Ownership {
  readonly key: string
  readonly ownerId: string
  readonly value: V
  readonly obtainedAtMs: EpochMs
  /** Expiry: the credential is not returned afterwards. */
  readonly endMs: EpochMs
  refreshAtMs: EpochMs
}

export interface EntriesOptions<V> {
  readonly clock: Clock
  readonly maxEntries: number
  /** Approximate limit of all entries, and size of a credential. */
  readonly maxBytes: number
  readonly weigh: (value: V) => number
  /** Enforced only while more than half of either limit is used. */
  readonly maxPerOwner: number
  readonly onCount: (count: number) => void
}

export interface Entries<V> {
  readonly size: number
  /** The live entry, marked as used. */
  use(key: string): Entry<V> | undefined
  /** The live entry, without marking it. */
  peek(key: string): Entry<V> | undefined
  add(slot: CacheSlot<V>, value: V, times: { obtainedAtMs: EpochMs; endMs: EpochMs; refreshAtMs: EpochMs }): void
  /** Removes an entry, counted by `reason`. */
  remove(entry: Entry<V>, reason: string): void
  all(): Iterable<Entry<V>>
}

/**
 * Creates the live credentials: limited in number and per issuer, caller and config, least recently used evicted
 * first.
 */
export function createEntries<V>(options: EntriesOptions<V>): Entries<V> {
  const { clock, maxEntries, maxBytes, weigh, maxPerOwner, onCount } = options
  const owners = createOwners()
  let removalReason: string | undefined

  const entries = createTtlLru<Entry<V>>({
    clock,
    maxEntries,
    maxWeight: maxBytes,
    weigh: ({ value }) => ENTRY_BYTES + weigh(value),
    onRemove(_key, entry, reason) {
      owners.remove(entry)
      entry.scope.counters.removed(removalReason ?? reason)
      onCount(entries.size)
    },
  })

  const remove = (entry: Entry<V>, reason: string) => {
    removalReason = reason
    entries.delete(entry.key)
    removalReason = undefined
  }

  /** Evicts the least recently used entries of an owner. */
  const trim = (owner: Entry<V>, excess: number) => {
    if (excess <= 0) return
    let left = excess
    for (const [, entry] of entries.entries()) {
      if (left <= 0) return
      if (!isSameOwner(entry, owner)) continue
      left -= 1
      remove(entry, 'owner_capacity')
    }
  }

  return {
    get size() {
      return entries.size
    },
    use: (key) => entries.get(key),
    peek: (key) => entries.peek(key),
    add(slot, value, { obtainedAtMs, endMs, refreshAtMs }) {
      const { key, scope, generation, issuer, subject, ownerId, role } = slot
      const entry = { key, scope, generation, issuer, subject, ownerId, role, value, obtainedAtMs, endMs, refreshAtMs }
      if (!entries.set(key, entry, endMs)) return
      const count = owners.add(entry)
      if (entries.size * 2 > maxEntries || entries.weight * 2 > maxBytes) trim(entry, count - maxPerOwner)
      onCount(entries.size)
    },
    remove,
    *all() {
      for (const [, entry] of entries.entries()) yield entry
    },
  }
}

/** An entry with an owner. */
interface Owned {
  readonly scope: { readonly config: string }
  readonly issuer: string
  readonly ownerId: string
}

/** Number of entries per caller and config. */
interface Owners {
  /** Adds one; returns the new number. */
  add(entry: Owned): number
  remove(entry: Owned): void
}

/** Whether two entries have the same caller and config. */
const isSameOwner = (a: Owned, b: Owned): boolean =>
  a.ownerId === b.ownerId && a.issuer === b.issuer && a.scope.config === b.scope.config

/** Counts by 48 bits of SHA-256, which take less memory than names and cannot be chosen to collide. */
function createOwners(): Owners {
  const counts = new Map<number, number>()

  const numberOf = ({ scope, issuer, ownerId }: Owned): number =>
    hash('sha256', JSON.stringify([scope.config, issuer, ownerId]), 'buffer').readUIntBE(0, 6)

  const change = (entry: Owned, by: number): number => {
    const owner = numberOf(entry)
    const count = (counts.get(owner) ?? 0) + by
    if (count === 0) counts.delete(owner)
    else counts.set(owner, count)
    return count
  }

  return {
    add: (entry) => change(entry, 1),
    remove: (entry) => void change(entry, -1),
  }
}
