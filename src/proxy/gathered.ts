/** Bytes of room that a body of unknown length gets more than it needs, once a second piece of it has come. */
const SPARE_BYTES = 64 * 1024

/**
 * A body that is kept, joined as it comes, so that it is never there twice: in room of its announced length, or in room
 * that doubles up to `limitBytes`. One that comes in one piece is that piece, uncopied.
 */
export class Gathered {
  readonly #announced: number | undefined
  readonly #limitBytes: number
  #room: Buffer | undefined
  /** Bytes that have come. */
  length = 0

  constructor(announced: number | undefined, limitBytes: number) {
    this.#announced = announced
    this.#limitBytes = limitBytes
  }

  /** Bytes of memory that it would hold more with `chunk`. Room of an announced length costs as it is filled: untouched memory is none. */
  costOf(chunk: Buffer): number {
    return this.#announced === undefined ? this.#roomWith(chunk) - (this.#room?.length ?? 0) : chunk.length
  }

  add(chunk: Buffer): void {
    const size = this.#roomWith(chunk)
    if (this.#room === undefined && size === chunk.length) this.#room = chunk
    else {
      const room = this.#room?.length === size ? this.#room : this.#moved(size)
      chunk.copy(room, this.length)
      this.#room = room
    }
    this.length += chunk.length
  }

  /** What has come, not copied. */
  bytes(): Buffer {
    return this.#room?.subarray(0, this.length) ?? Buffer.alloc(0)
  }

  #roomWith(chunk: Buffer): number {
    const { length = 0 } = this.#room ?? {}
    const needed = this.length + chunk.length
    if (needed <= length) return length
    if (this.#announced !== undefined) return this.#announced
    return length === 0 ? needed : Math.max(needed, Math.min(2 * needed + SPARE_BYTES, this.#limitBytes))
  }

  /** Not in the pool for small buffers, which would be kept with it. */
  #moved(size: number): Buffer {
    const room = Buffer.allocUnsafeSlow(size)
    this.#room?.copy(room, 0, 0, this.length)
    return room
  }
}
