/** Bytes of its body that a request holds. */
export interface BodyHolder {
  keptBytes: number
}

/** An eighth of the budget is reserved for bodies up to this size: calls continue while uploads use up their share. */
const SMALL_BYTES = 64 * 1024
const SHARE_OF_LARGE = 7 / 8

/** Memory budget for buffered bodies of all requests. */
export class BodyBudget {
  /** The limit. */
  readonly limitBytes: number
  #heldBytes = 0

  constructor(limitBytes: number) {
    this.limitBytes = limitBytes
  }

  /** Reserves `bytes`; false without enough memory. A single body always fits. */
  take(holder: BodyHolder, bytes: number): boolean {
    const isSmall = holder.keptBytes + bytes <= SMALL_BYTES
    const limitBytes = isSmall ? this.limitBytes : SHARE_OF_LARGE * this.limitBytes
    if (this.#heldBytes + bytes > limitBytes && this.#heldBytes !== holder.keptBytes) return false
    holder.keptBytes += bytes
    this.#heldBytes += bytes
    return true
  }

  /** Releases the whole body. */
  release(holder: BodyHolder): void {
    this.#heldBytes -= holder.keptBytes
    holder.keptBytes = 0
  }
}

/** Memory of a streamed body while its backend does not read: one piece being written and one read behind it. */
const LEAST_BYTES = 128 * 1024
/** Additional read-ahead while the client is read. */
const AHEAD_BYTES = 64 * 1024
/** Multiple of the budget at which no further bodies are streamed: even paused ones would use too much memory. */
const MOST_TIMES = 4

/** A request whose body may be streamed. */
export interface StreamHolder {
  /** Counted bytes of its body. */
  streamBytes: number
  /** Pauses or resumes reading from its client. */
  holdClient(isHeld: boolean): void
}

/**
 * Memory budget for streamed bodies of all requests. Beyond `limitBytes`, clients are paused while their backend does
 * not read; beyond four times that, no further bodies are streamed.
 */
export class StreamBudget {
  readonly limitBytes: number
  #heldBytes = 0

  constructor(limitBytes: number) {
    this.limitBytes = limitBytes
  }

  get isFull(): boolean {
    return this.#heldBytes + LEAST_BYTES > MOST_TIMES * this.limitBytes
  }

  /** The body is streamed from now on; nothing reads it yet. */
  begin(holder: StreamHolder): void {
    if (holder.streamBytes === 0) this.#count(holder, LEAST_BYTES)
    this.stall(holder)
  }

  /** The backend stopped reading. */
  stall(holder: StreamHolder): void {
    if (holder.streamBytes !== LEAST_BYTES) return
    if (this.#heldBytes + AHEAD_BYTES <= this.limitBytes) this.#count(holder, LEAST_BYTES + AHEAD_BYTES)
    else holder.holdClient(true)
  }

  /** The backend reads again. */
  flow(holder: StreamHolder): void {
    if (holder.streamBytes > 0) this.#count(holder, LEAST_BYTES)
    holder.holdClient(false)
  }

  /** The request has ended. */
  end(holder: StreamHolder): void {
    this.#count(holder, 0)
    holder.holdClient(false)
  }

  #count(holder: StreamHolder, bytes: number): void {
    this.#heldBytes += bytes - holder.streamBytes
    holder.streamBytes = bytes
  }
}
