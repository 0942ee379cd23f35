/** A source of chance that gives the same each time for a seed. */
export class Chance {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** 0 ≤ n < `below`. */
  below(below: number): number {
    // mulberry32
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = this.#state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below
  }

  one<T>(of: readonly T[]): T {
    return of[this.below(of.length)] as T
  }

  /** In pieces of any size. */
  cut(bytes: Buffer): Buffer[] {
    const pieces: Buffer[] = []
    const most = this.one([1, 3, 20, 400])
    for (let at = 0; at < bytes.length;) {
      const end = at + 1 + this.below(most)
      pieces.push(bytes.subarray(at, end))
      at = end
    }
    return pieces
  }
}
