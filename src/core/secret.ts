import { createHash, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto'

const REDACTED = '[secret]'

/**
 * A value that redacts itself in logs, JSON, string concatenation and `util.inspect`. Only `reveal()` (for the
 * component that sends it) and the comparisons below read it.
 */
export class Secret {
  readonly #value: string | Buffer
  #key: KeyObject | undefined

  /** Text, or bytes that are not valid UTF-8, which serve only as a key. */
  constructor(value: string | Buffer) {
    this.#value = typeof value === 'string' ? value : Buffer.from(value)
  }

  /** The plaintext. Call it only where the value leaves the process. Throws for bytes. */
  reveal(): string {
    if (typeof this.#value !== 'string') throw new TypeError('a binary secret has no text form')
    return this.#value
  }

  /** The plaintext as key material: text in UTF-8, or the bytes. */
  bytes(): Buffer {
    return typeof this.#value === 'string' ? Buffer.from(this.#value, 'utf8') : Buffer.from(this.#value)
  }

  /**
   * The plaintext as a `node:crypto` key, created once: a key passed as bytes costs 15 µs more per use
   * (docs/adr/0360).
   */
  key(): KeyObject {
    return (this.#key ??= createSecretKey(this.bytes()))
  }

  /** Length of the plaintext in UTF-16 code units, or bytes. */
  get length(): number {
    return this.#value.length
  }

  /** SHA-256 of the plaintext (text in UTF-8), base64url: for cache keys and change detection. */
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
