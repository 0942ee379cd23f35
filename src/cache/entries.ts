import { hash } from 'node:crypto'
import type { Clock } from '../core/index.ts'
import type { CacheSlot, Ownership } from './slot.ts'
import { createTtlLru } from './ttl-lru.ts'

/** About what an entry takes beside its credential. */
export const ENTRY_BYTES = 700

/** A live credential. Holds nothing of the caller but its names, so that a cached entry keeps no claims alive. */
export interface Entry<V> extends Ownership {
  readonly key: string
  readonly ownerId: string
  readonly value: V
  readonly obtainedAtMs: number
  /** The hard end: from here on it is not given out. */
  readonly endMs: number
  refreshAtMs: number
}

export interface EntriesOptions<V> {
  readonly clock: Clock
  readonly maxEntries: number
  /** Bytes that all of them may take, about, and those of one credential. */
  readonly maxBytes: number
  readonly weigh: (value: V) => number
  /** Enforced only while more than half of either bound is taken: before that nobody takes anybody's place. */
  readonly maxPerOwner: number
  readonly onCount: (count: number) => void
}

export interface Entries<V> {
  readonly size: number
  /** The live entry, counted as used. */
  use(key: string): Entry<V> | undefined
  /** The live entry, not counted as used. */
  peek(key: string): Entry<V> | undefined
  add(slot: CacheSlot<V>, value: V, times: { obtainedAtMs: number; endMs: number; refreshAtMs: number }): void
  /** Removes and counts by `reason`. */
  remove(entry: Entry<V>, reason: string): void
  all(): Iterable<Entry<V>>
}

/** The live credentials: bounded in number and per issuer + caller + config, least recently used first out. */
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

  /** Takes the least recently used ones of an owner away. */
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

/** Something that belongs to somebody. */
interface Owned {
  readonly scope: { readonly config: string }
  readonly issuer: string
  readonly ownerId: string
}

/** How many entries each caller has of each config. */
interface Owners {
  /** Counts one more; gives how many there are now. */
  add(entry: Owned): number
  remove(entry: Owned): void
}

/** Whether two entries are of one caller and config. */
const isSameOwner = (a: Owned, b: Owned): boolean =>
  a.ownerId === b.ownerId && a.issuer === b.issuer && a.scope.config === b.scope.config

/** Counts by 48 bits of SHA-256, which take less memory than the names and which nobody can choose to share. */
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
