import { Readable } from 'node:stream'

/** An event stream of the proxy itself; `push(null)` ends it cleanly. Its events are few and small, so they are buffered. */
export class EventStream extends Readable {
  #isEnded = false

  /** Calls `onClose` once, when the stream has ended or its client left. */
  constructor(onClose: () => void) {
    super({ read: () => undefined })
    this.once('close', onClose)
  }

  /** Ignored after the end. */
  override push(data: string | Uint8Array | null): boolean {
    if (this.#isEnded || this.destroyed) return false
    this.#isEnded = data === null
    return super.push(data)
  }
}
