/** What a request holds of its body, in bytes. */
export interface BodyHolder {
  keptBytes: number
}

/** Memory for bodies that are kept, of all requests together. */
export class BodyBudget {
  /** Most that may be kept. */
  readonly limitBytes: number
  #heldBytes = 0

  constructor(limitBytes: number) {
    this.limitBytes = limitBytes
  }

  /** Whether `bytes` more could be kept now. One that nothing else is kept beside always can. */
  hasRoom(holder: BodyHolder, bytes: number): boolean {
    return this.#heldBytes + bytes <= this.limitBytes || this.#heldBytes === holder.keptBytes
  }

  /** Notes that `bytes` more are kept; false, and nothing noted, when there is no room. */
  take(holder: BodyHolder, bytes: number): boolean {
    if (!this.hasRoom(holder, bytes)) return false
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
