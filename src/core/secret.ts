import { createHash, timingSafeEqual } from 'node:crypto'

const REDACTED = '[secret]'

/**
 * A value that must never be seen: it redacts itself in logs, JSON, string concatenation and `util.inspect`.
 * The only ways in are `reveal()` (for the one place that sends it) and the comparisons below.
 */
export class Secret {
  readonly #value: string

  constructor(value: string) {
    this.#value = value
  }

  /** The plaintext. Call it where the value leaves the process and nowhere else. */
  reveal(): string {
    return this.#value
  }

  /** Length of the plaintext in UTF-16 code units; says whether there is anything at all. */
  get length(): number {
    return this.#value.length
  }

  /** SHA-256 of the UTF-8 plaintext, base64url: fit for cache keys and for telling a changed value from an unchanged one. */
  digest(): string {
    return createHash('sha256').update(this.#value).digest('base64url')
  }

  /** Compares in constant time, lengths included, by comparing digests. */
  equals(other: Secret | string): boolean {
    const theirs = typeof other === 'string' ? other : other.#value
    const hash = (text: string) => createHash('sha256').update(text).digest()
    return timingSafeEqual(hash(this.#value), hash(theirs))
  }

  toString(): string {
    return REDACTED
  }

  toJSON(): string {
    return REDACTED
  }

  [Symbol.toPrimitive](): string {
    return REDACTED
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return REDACTED
  }
}
