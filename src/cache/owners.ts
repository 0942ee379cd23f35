import { hash } from 'node:crypto'

/** Something that belongs to somebody. */
export interface Owned {
  readonly scope: { readonly config: string }
  readonly issuer: string
  readonly ownerId: string
}

/** How many entries each caller has of each config. */
export interface Owners {
  /** Counts one more; gives how many there are now. */
  add(entry: Owned): number
  remove(entry: Owned): void
}

/** Whether two entries are of one caller and config. */
export const isSameOwner = (a: Owned, b: Owned): boolean =>
  a.ownerId === b.ownerId && a.issuer === b.issuer && a.scope.config === b.scope.config

/** Counts by 48 bits of SHA-256, which take less memory than the names and which nobody can choose to share. */
export function createOwners(): Owners {
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
