import type { Clock } from '../core/index.ts'
import { hashKey } from './hash-key.ts'
import type { CacheSlot, Generation, CacheScope, Ownership } from './slot.ts'
import { createTtlLru, type RemovalReason } from './ttl-lru.ts'

/** A live credential. Holds nothing of the caller but its names, so that a cached entry keeps no claims alive. */
export interface Entry<V> extends Ownership {
  readonly key: string
  readonly scope: CacheScope
  readonly generation: Generation
  readonly value: V
  readonly obtainedAtMs: number
  /** The hard end: from here on it is not given out. */
  readonly endMs: number
  refreshAtMs: number
  /** Goes up with each use; the lowest of an owner goes first. */
  lastUse: number
  readonly owner: string
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

/** The live credentials: bounded in number and per issuer + subject + config, least recently used first out. */
export function createEntries<V>(options: EntriesOptions): Entries<V> {
  const owners = new Map<string, Entry<V>[]>()
  let uses = 0
  let removalReason: string | undefined

  const disown = (entry: Entry<V>) => {
    const rest = (owners.get(entry.owner) ?? []).filter((other) => other !== entry)
    if (rest.length === 0) owners.delete(entry.owner)
    else owners.set(entry.owner, rest)
  }

  const entries = createTtlLru<Entry<V>>({
    clock: options.clock,
    maxEntries: options.maxEntries,
    onRemove(_key, entry, reason: RemovalReason) {
      disown(entry)
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
      const { key, scope, generation, issuer, subject, role } = slot
      const owner = hashKey([scope.config, issuer, slot.ownerId])
      const ownership = { scope, generation, issuer, subject, role }
      const entry = { key, ...ownership, value, obtainedAtMs, endMs, refreshAtMs, lastUse: ++uses, owner }
      entries.set(key, entry, endMs)
      // So short a life, or so small a cache, that it is gone already.
      if (entries.peek(key) !== entry) return
      const owned = [...(owners.get(owner) ?? []), entry]
      owners.set(owner, owned)
      if (owned.length > options.maxPerOwner) {
        remove(
          owned.reduce((first, other) => (other.lastUse < first.lastUse ? other : first)),
          'owner_capacity',
        )
      }
      options.onCount(entries.size)
    },
    remove,
    *all() {
      for (const [, entry] of entries.entries()) yield entry
    },
  }
}
