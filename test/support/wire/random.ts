import { seeded } from '../seeded.ts'

/** A source of chance that gives the same each time for a seed. */
export class Chance {
  /** 0 ≤ n < `below`. */
  readonly below: (below: number) => number

  constructor(seed: number) {
    this.below = seeded(seed)
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
