import { hash } from 'node:crypto'

/** Something that belongs to somebody, linked to the others of the same bucket. */
export interface Owned {
  readonly scope: { readonly config: string }
  readonly issuer: string
  readonly ownerId: string
  /** Goes up with each use. */
  lastUse: number
  /** The next in the same bucket; this index owns it. */
  next: Owned | undefined
}

export interface Owners<E extends Owned> {
  /** Adds; gives the least recently used one of the same owner when there are more than the bound now. */
  add(entry: E): E | undefined
  remove(entry: E): void
}

const isSameOwner = (a: Owned, b: Owned) =>
  a.ownerId === b.ownerId && a.issuer === b.issuer && a.scope.config === b.scope.config

/**
 * Who owns how many: a hash table of chains that run through the entries themselves, because a map of lists would cost
 * as much as the entries. The buckets are numbered by SHA-256, so that nobody can choose names that share one.
 */
export function createOwners<E extends Owned>(maxPerOwner: number): Owners<E> {
  const heads = new Map<number, Owned>()

  const bucketOf = ({ scope, issuer, ownerId }: Owned): number =>
    // 30 bits: what V8 keeps in a word.
    hash('sha256', JSON.stringify([scope.config, issuer, ownerId]), 'buffer').readUInt32LE(0) >>> 2

  return {
    add(entry) {
      const bucket = bucketOf(entry)
      entry.next = heads.get(bucket)
      heads.set(bucket, entry)
      let count = 0
      let oldest: Owned = entry
      for (let other: Owned | undefined = entry; other !== undefined; other = other.next) {
        if (!isSameOwner(other, entry)) continue
        count += 1
        if (other.lastUse < oldest.lastUse) oldest = other
      }
      // Only an `E` is ever added.
      return count > maxPerOwner ? (oldest as E) : undefined
    },
    remove(entry) {
      const bucket = bucketOf(entry)
      const head = heads.get(bucket)
      if (head === entry) {
        if (entry.next === undefined) heads.delete(bucket)
        else heads.set(bucket, entry.next)
      } else {
        let before = head
        while (before !== undefined && before.next !== entry) before = before.next
        if (before !== undefined) before.next = entry.next
      }
      entry.next = undefined
    },
  }
}
