import { createHash, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto'

const REDACTED = '[secret]'

/**
 * A value that must never be seen: it redacts itself in logs, JSON, string concatenation and `util.inspect`.
 * The only ways in are `reveal()` (for the one place that sends it) and the comparisons below.
 */
export class Secret {
  readonly #value: string | Buffer
  #key: KeyObject | undefined

  /** Text, or bytes that are none: those are a key and go nowhere. */
  constructor(value: string | Buffer) {
    this.#value = typeof value === 'string' ? value : Buffer.from(value)
  }

  /** The plaintext. Call it where the value leaves the process and nowhere else. Throws for bytes. */
  reveal(): string {
    if (typeof this.#value !== 'string') throw new TypeError('a secret of bytes has no text')
    return this.#value
  }

  /** The plaintext as a key is made of it: text in UTF-8, or the bytes. */
  bytes(): Buffer {
    return typeof this.#value === 'string' ? Buffer.from(this.#value, 'utf8') : Buffer.from(this.#value)
  }

  /** The plaintext as a key of `node:crypto`, made once: each use of one that comes as bytes costs 15 µs more (docs/adr/0360). */
  key(): KeyObject {
    return (this.#key ??= createSecretKey(this.bytes()))
  }

  /** Length of the plaintext in UTF-16 code units, or bytes; says whether there is anything at all. */
  get length(): number {
    return this.#value.length
  }

  /** SHA-256 of the plaintext (text in UTF-8), base64url: fit for cache keys and for telling a changed value from an unchanged one. */
  digest(): string {
    return createHash('sha256').update(this.#value).digest('base64url')
  }

  /** Compares in constant time, lengths included, by comparing digests. */
  equals(other: Secret | string): boolean {
    const theirs = typeof other === 'string' ? other : other.#value
    const hash = (value: string | Buffer) => createHash('sha256').update(value).digest()
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
