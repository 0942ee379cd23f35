/** What a request holds of its body, in bytes. */
export interface BodyHolder {
  keptBytes: number
}

/** Bodies up to this size have an eighth of the room to themselves: calls go on while uploads have taken all of theirs. */
const SMALL_BYTES = 64 * 1024
const SHARE_OF_LARGE = 7 / 8

/** Memory for bodies that are kept, of all requests together. */
export class BodyBudget {
  /** Most that may be kept. */
  readonly limitBytes: number
  #heldBytes = 0

  constructor(limitBytes: number) {
    this.limitBytes = limitBytes
  }

  /** Notes that `bytes` more are kept; false, and nothing noted, when there is no room. One beside which nothing is kept always has room. */
  take(holder: BodyHolder, bytes: number): boolean {
    const isSmall = holder.keptBytes + bytes <= SMALL_BYTES
    const limitBytes = isSmall ? this.limitBytes : SHARE_OF_LARGE * this.limitBytes
    if (this.#heldBytes + bytes > limitBytes && this.#heldBytes !== holder.keptBytes) return false
    holder.keptBytes += bytes
    this.#heldBytes += bytes
    return true
  }

  /** Nothing of the body is kept any more. */
  release(holder: BodyHolder): void {
    this.#heldBytes -= holder.keptBytes
    holder.keptBytes = 0
  }
}

/**
 * What a streamed body holds while its backend does not read: a piece that is being written, and one that was read behind it, each as
 * large as the system reads at once.
 */
const LEAST_BYTES = 128 * 1024
/** What is read beyond that of a client that is read on. */
const AHEAD_BYTES = 64 * 1024
/** So many times the room for all: with more bodies than that, those that are read no further would be too many. */
const MOST_TIMES = 4

/** A request whose body may be streamed. */
export interface StreamHolder {
  /** Counted of its body, in bytes. */
  streamBytes: number
  /** Whether its client is read no further. */
  holdClient(isHeld: boolean): void
}

/**
 * Memory for bodies that are streamed, of all requests together. Beyond `limitBytes`, the client of a body that its backend does not
 * take is read no further; beyond four times that, nothing more is streamed.
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

  /** The body is streamed from now on, and nothing takes it yet. */
  begin(holder: StreamHolder): void {
    if (holder.streamBytes === 0) this.#count(holder, LEAST_BYTES)
    this.stall(holder)
  }

  /** The backend takes no more of it for now. */
  stall(holder: StreamHolder): void {
    if (holder.streamBytes !== LEAST_BYTES) return
    if (this.#heldBytes + AHEAD_BYTES <= this.limitBytes) this.#count(holder, LEAST_BYTES + AHEAD_BYTES)
    else holder.holdClient(true)
  }

  /** It takes more. */
  flow(holder: StreamHolder): void {
    if (holder.streamBytes > 0) this.#count(holder, LEAST_BYTES)
    holder.holdClient(false)
  }

  /** Nothing is done for its request any more. */
  end(holder: StreamHolder): void {
    this.#count(holder, 0)
    holder.holdClient(false)
  }

  #count(holder: StreamHolder, bytes: number): void {
    this.#heldBytes += bytes - holder.streamBytes
    holder.streamBytes = bytes
  }
}
