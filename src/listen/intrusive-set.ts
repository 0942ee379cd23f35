/** An item that stores its index in an `IntrusiveSet`; -1 if it is in none. */
export interface Slotted {
  slot: number
}

/**
 * A set for adding and removing on every request. V8's `Set` allocates a new table every few additions and links the
 * old one to it: a dead table in the old generation keeps all later ones alive, with every request in them, until a
 * full collection. That cost more than all other code of the proxy.
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

  /** Moves the last member to the place of the removed one. */
  delete(member: T): void {
    const { slot } = member
    if (slot < 0) return
    member.slot = -1
    const last = this.#members.pop()
    if (last === undefined || last === member) return
    this.#members[slot] = last
    last.slot = slot
  }

  /** Iterates over a copy: members may be removed meanwhile. */
  [Symbol.iterator](): IterableIterator<T> {
    return [...this.#members].values()
  }
}
