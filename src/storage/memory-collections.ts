import type { MemoryEntries } from './memory-entries.ts'

/** Which members a bounded collection has, and which of them were used. */
export interface MemoryCollections {
  /** Makes room for one more member than there is; false when all are in use. */
  makeRoom(collection: string, key: string, most: number): boolean
  add(collection: string, key: string): void
  touch(collection: string, key: string): void
  remove(collection: string, key: string): void
}

/** Beside the entries: members that ended are found when a collection is full. */
export function createMemoryCollections(entries: MemoryEntries): MemoryCollections {
  /** Collection → member → was it touched. */
  const collections = new Map<string, Map<string, boolean>>()

  const soonestUntouched = (members: ReadonlyMap<string, boolean>): string | undefined => {
    let found: string | undefined
    let foundEndMs = Infinity
    for (const [member, isTouched] of members) {
      const endMs = entries.get(member)?.endMs ?? 0
      if (isTouched || endMs >= foundEndMs) continue
      found = member
      foundEndMs = endMs
    }
    return found
  }

  return {
    makeRoom(collection, key, most) {
      const members = collections.get(collection)
      if (entries.get(key) === undefined) members?.delete(key)
      if (members === undefined || members.has(key)) return most > 0
      if (members.size < most) return true
      for (const member of members.keys()) if (entries.get(member) === undefined) members.delete(member)
      while (members.size >= most) {
        const oldest = soonestUntouched(members)
        if (oldest === undefined) return false
        entries.delete(oldest)
        members.delete(oldest)
      }
      return true
    },
    add(collection, key) {
      const members = collections.get(collection) ?? new Map<string, boolean>()
      members.set(key, members.get(key) ?? false)
      collections.set(collection, members)
    },
    touch(collection, key) {
      collections.get(collection)?.set(key, true)
    },
    remove(collection, key) {
      const members = collections.get(collection)
      members?.delete(key)
      if (members?.size === 0) collections.delete(collection)
    },
  }
}
