import type { Clock } from '../core/index.ts'
import { createExpiringLru } from './expiring-lru.ts'
import { createOwners, type Owned } from './owners.ts'
import type { CacheSlot, Ownership } from './slot.ts'

/** So many additions pay for one sweep: what nobody asks for any more does not stay in memory after its end. */
const ADDITIONS_PER_SWEEP = 256

/** A live credential. Holds nothing of the caller but its names, so that a cached entry keeps no claims alive. */
export interface Entry<V> extends Ownership, Owned {
  readonly scope: Ownership['scope']
  readonly issuer: string
  readonly key: string
  readonly value: V
  readonly obtainedAtMs: number
  /** The hard end: from here on it is not given out. */
  readonly endMs: number
  refreshAtMs: number
}

export interface EntriesOptions {
  readonly clock: Clock
  readonly maxEntries: number
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
export function createEntries<V>(options: EntriesOptions): Entries<V> {
  const owners = createOwners<Entry<V>>(options.maxPerOwner)
  let uses = 0
  let additions = 0
  let removalReason: string | undefined

  const entries = createExpiringLru<Entry<V>>({
    clock: options.clock,
    maxEntries: options.maxEntries,
    onRemove(_key, entry, reason) {
      owners.remove(entry)
      entry.scope.counters.removed(removalReason ?? reason)
      options.onCount(entries.size)
    },
  })

  const remove = (entry: Entry<V>, reason: string) => {
    removalReason = reason
    entries.delete(entry.key)
    removalReason = undefined
  }

  return {
    get size() {
      return entries.size
    },
    use(key) {
      const entry = entries.get(key)
      if (entry !== undefined) entry.lastUse = ++uses
      return entry
    },
    peek: (key) => entries.peek(key),
    add(slot, value, { obtainedAtMs, endMs, refreshAtMs }) {
      const { key, scope, generation, issuer, subject, ownerId, role } = slot
      const lastUse = ++uses
      const names = { scope, generation, issuer, subject, ownerId, role }
      const entry = { key, ...names, value, obtainedAtMs, endMs, refreshAtMs, lastUse, next: undefined }
      additions += 1
      if (additions % ADDITIONS_PER_SWEEP === 0) entries.sweep()
      entries.set(key, entry)
      // So short a life, or so small a cache, that it is gone already.
      if (entries.peek(key) !== entry) return
      const excess = owners.add(entry)
      if (excess !== undefined) remove(excess, 'owner_capacity')
      options.onCount(entries.size)
    },
    remove,
    *all() {
      for (const [, entry] of entries.entries()) yield entry
    },
  }
}
