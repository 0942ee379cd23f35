/** Spare bytes for a body of unknown length once a second piece has arrived. */
const SPARE_BYTES = 64 * 1024

/**
 * A buffered body, joined as it arrives without a second copy: in a buffer of the announced length, or in one that
 * doubles up to `limitBytes`. A single piece is used without a copy.
 */
export class Gathered {
  readonly #announced: number | undefined
  readonly #limitBytes: number
  #buffer: Buffer | undefined
  /** Bytes received. */
  length = 0

  constructor(announced: number | undefined, limitBytes: number) {
    this.#announced = announced
    this.#limitBytes = limitBytes
  }

  /**
   * Additional memory needed for `chunk`. A buffer of the announced length counts as it is filled: untouched memory
   * costs nothing.
   */
  costOf(chunk: Buffer): number {
    return this.#announced === undefined ? this.#sizeWith(chunk) - (this.#buffer?.length ?? 0) : chunk.length
  }

  add(chunk: Buffer): void {
    const size = this.#sizeWith(chunk)
    if (this.#buffer === undefined && size === chunk.length) this.#buffer = chunk
    else {
      const buffer = this.#buffer?.length === size ? this.#buffer : this.#moved(size)
      chunk.copy(buffer, this.length)
      this.#buffer = buffer
    }
    this.length += chunk.length
  }

  /** The received bytes, not copied. */
  bytes(): Buffer {
    return this.#buffer?.subarray(0, this.length) ?? Buffer.alloc(0)
  }

  #sizeWith(chunk: Buffer): number {
    const { length = 0 } = this.#buffer ?? {}
    const needed = this.length + chunk.length
    if (needed <= length) return length
    if (this.#announced !== undefined) return this.#announced
    return length === 0 ? needed : Math.max(needed, Math.min(2 * needed + SPARE_BYTES, this.#limitBytes))
  }

  /** Not from the pool for small buffers, which it would keep alive. */
  #moved(size: number): Buffer {
    const grown = Buffer.allocUnsafeSlow(size)
    this.#buffer?.copy(grown, 0, 0, this.length)
    return grown
  }
}
