import type { MemoryEntries } from './memory-entries.ts'
import type { Bound, CollectionSize } from './port.ts'

/** Members of a bounded collection, with their sizes and whether they were used. */
export interface MemoryCollections {
  /** Evicts unused members for one of `bytes`, if possible. */
  makeRoom(
    collection: string,
    key: string,
    bytes: number,
    bound: Bound,
  ): { readonly isThere: boolean; readonly evicted: number }
  add(collection: string, key: string, bytes: number): void
  held(collection: string): CollectionSize
  touch(collection: string, key: string): void
  remove(collection: string, key: string): void
  all(): readonly CollectionMember[]
  /** Keys of live members, the first added first. */
  keys(collection: string): readonly string[]
}

/** A member, and whether it was used. */
export type CollectionMember = readonly [collection: string, key: string, isTouched: boolean]

interface Member {
  readonly bytes: number
  isTouched: boolean
}

interface Collection {
  readonly members: Map<string, Member>
  bytes: number
}

/** Creates the index of collections. Expired members are found when a collection is full. */
export function createMemoryCollections(entries: MemoryEntries): MemoryCollections {
  const collections = new Map<string, Collection>()

  const leave = (collection: Collection, key: string): void => {
    collection.bytes -= collection.members.get(key)?.bytes ?? 0
    collection.members.delete(key)
  }

  const soonestUntouched = (members: ReadonlyMap<string, Member>, but: string): string | undefined => {
    let found: string | undefined
    let foundEndMs = Infinity
    for (const [key, { isTouched }] of members) {
      const endMs = entries.get(key)?.endMs ?? 0
      if (isTouched || key === but || endMs >= foundEndMs) continue
      found = key
      foundEndMs = endMs
    }
    return found
  }

  return {
    makeRoom(name, key, bytes, bound) {
      if (bytes > bound.bytes || bound.members < 1) return { isThere: false, evicted: 0 }
      const collection = collections.get(name)
      if (collection === undefined) return { isThere: true, evicted: 0 }
      const { members } = collection
      if (entries.get(key) === undefined) leave(collection, key)
      const fits = () => {
        const old = members.get(key)
        const places = members.size + (old === undefined ? 1 : 0)
        return places <= bound.members && collection.bytes - (old?.bytes ?? 0) + bytes <= bound.bytes
      }
      if (fits()) return { isThere: true, evicted: 0 }
      for (const member of members.keys()) if (entries.get(member) === undefined) leave(collection, member)
      let evicted = 0
      while (!fits()) {
        const oldest = bound.evicts === false ? undefined : soonestUntouched(members, key)
        if (oldest === undefined) return { isThere: false, evicted }
        entries.delete(oldest)
        leave(collection, oldest)
        evicted += 1
      }
      return { isThere: true, evicted }
    },
    add(name, key, bytes) {
      const collection = collections.get(name) ?? { members: new Map<string, Member>(), bytes: 0 }
      const isTouched = collection.members.get(key)?.isTouched ?? false
      leave(collection, key)
      collection.members.set(key, { bytes, isTouched })
      collection.bytes += bytes
      collections.set(name, collection)
    },
    held(name) {
      const collection = collections.get(name)
      return { members: collection?.members.size ?? 0, bytes: collection?.bytes ?? 0 }
    },
    touch(name, key) {
      const member = collections.get(name)?.members.get(key)
      if (member !== undefined) member.isTouched = true
    },
    keys: (name) => [...(collections.get(name)?.members.keys() ?? [])].filter((key) => entries.get(key) !== undefined),
    remove(name, key) {
      const collection = collections.get(name)
      if (collection === undefined) return
      leave(collection, key)
      if (collection.members.size === 0) collections.delete(name)
    },
    all: () =>
      [...collections].flatMap(([name, { members }]) =>
        [...members].map(([key, { isTouched }]): CollectionMember => [name, key, isTouched]),
      ),
  }
}
