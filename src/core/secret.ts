import { createHash, timingSafeEqual } from 'node:crypto'

const REDACTED = '[secret]'

/** Where two texts are put to be compared: making the room anew would cost more than comparing. */
const SCRATCH_BYTES = 64 * 1024
const MOST_BYTES_PER_UNIT = 3
const OURS = Buffer.allocUnsafeSlow(SCRATCH_BYTES)
const THEIRS = Buffer.allocUnsafeSlow(SCRATCH_BYTES)

/**
 * A value that must never be seen: it redacts itself in logs, JSON, string concatenation and `util.inspect`.
 * The only ways in are `reveal()` (for the one place that sends it) and the comparisons below.
 */
export class Secret {
  readonly #value: string | Buffer

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

  /**
   * Whether the plaintext is this text, in constant time for texts of one length; that the length differs may be seen.
   * For what is compared with each request: a third of what `equals` takes.
   */
  isText(text: string): boolean {
    const ours = this.#value
    if (typeof ours !== 'string' || ours.length !== text.length) return false
    if (ours.length * MOST_BYTES_PER_UNIT > SCRATCH_BYTES) return this.equals(text)
    const length = OURS.write(ours)
    if (THEIRS.write(text) !== length) return false
    return timingSafeEqual(OURS.subarray(0, length), THEIRS.subarray(0, length))
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
