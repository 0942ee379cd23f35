/** Something that knows its place in an `IntrusiveSet`; -1 when it is in none. */
export interface Slotted {
  slot: number
}

/**
 * A set of what is going on now, for adding and removing on every request. Not a `Set`: V8 makes a new table every few
 * additions and links the old one to it, so a dead table that reached the old generation keeps all later ones alive, with
 * every request in them, until a full collection. That cost more than all of our own code.
 */
export class IntrusiveSet<T extends Slotted> implements Iterable<T> {
  readonly #members: T[] = []

  get size(): number {
    return this.#members.length
  }

  add(member: T): void {
    if (member.slot >= 0) return
    member.slot = this.#members.push(member) - 1
  }

  /** The last member takes the place of the one that leaves. */
  delete(member: T): void {
    const { slot } = member
    if (slot < 0) return
    member.slot = -1
    const last = this.#members.pop()
    if (last === undefined || last === member) return
    this.#members[slot] = last
    last.slot = slot
  }

  /** Members may leave meanwhile: it goes over a copy. */
  [Symbol.iterator](): IterableIterator<T> {
    return [...this.#members].values()
  }
}
