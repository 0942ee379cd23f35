/** Numbers that a seed gives again: the same seed, the same callers and faults. */
export interface Random {
  /** From 0 up to, not including, 1. */
  next(): number
  /** A whole number, both ends included. */
  between(least: number, most: number): number
  /** @throws {RangeError} for an empty list */
  pick<T>(values: readonly T[]): T
  /** The same values in another order. */
  shuffled<T>(values: readonly T[]): T[]
  /** An independent generator for a part of the run. */
  of(name: string): Random
}

const TWO_TO_32 = 4_294_967_296

/** FNV-1a: a seed of 32 bits for a text. */
function hash(text: string): number {
  let value = 0x811c9dc5
  for (const char of text) value = Math.imul(value ^ (char.codePointAt(0) ?? 0), 0x01000193)
  return value >>> 0
}

/** Made of `seed` by mulberry32; not for secrets. */
export function createRandom(seed: string): Random {
  let state = hash(seed)
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / TWO_TO_32
  }
  const between = (least: number, most: number): number => least + Math.floor(next() * (most - least + 1))
  return {
    next,
    between,
    pick(values) {
      if (values.length === 0) throw new RangeError('nothing to pick from')
      return values[between(0, values.length - 1)] as (typeof values)[number]
    },
    shuffled(values) {
      const order = [...values]
      for (let at = order.length - 1; at > 0; at -= 1) {
        const other = between(0, at)
        const [one, two] = [order[at], order[other]]
        if (one !== undefined && two !== undefined) [order[at], order[other]] = [two, one]
      }
      return order
    },
    of: (name) => createRandom(`${seed}/${name}`),
  }
}
