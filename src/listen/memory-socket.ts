import { Duplex } from 'node:stream'

/** Callback of a stream after a chunk was consumed. */
type Callback = (error?: Error | null) => void

/**
 * One end of an in-process connection, with the socket interface that HTTP code needs. Writers wait for readers.
 * Destroying an end looks like a closed socket at the other: sent data still arrives, then the end, and writing fails
 * with EPIPE.
 */
export class MemorySocket extends Duplex {
  bytesRead = 0
  bytesWritten = 0
  /** Set once by `memoryConnection`. */
  other: MemorySocket | undefined = undefined
  #taken: Callback | undefined = undefined
  #hasEnded = false

  constructor() {
    super({ allowHalfOpen: true })
  }

  override _read(): void {
    const taken = this.#taken
    this.#taken = undefined
    taken?.()
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, callback: Callback): void {
    const { other } = this
    if (other === undefined || other.destroyed) return callback(brokenPipe())
    this.bytesWritten += chunk.length
    other.#receive(chunk, callback)
  }

  override _final(callback: Callback): void {
    if (this.other !== undefined) this.other.#end()
    callback()
  }

  override _destroy(error: Error | null, callback: Callback): void {
    const taken = this.#taken
    this.#taken = undefined
    taken?.(brokenPipe())
    if (this.other !== undefined) this.other.#end()
    callback(error)
  }

  /** Closes as soon as written data was consumed, like `net.Socket`. */
  destroySoon(): void {
    if (this.writable) this.end()
    if (this.writableFinished) this.destroy()
    else this.once('finish', () => this.destroy())
  }

  // Socket options without meaning in memory.
  setTimeout(): this {
    return this
  }
  setNoDelay(): this {
    return this
  }
  setKeepAlive(): this {
    return this
  }
  ref(): this {
    return this
  }
  unref(): this {
    return this
  }

  #receive(chunk: Buffer, callback: Callback): void {
    this.bytesRead += chunk.length
    if (this.push(chunk)) process.nextTick(callback)
    else this.#taken = callback
  }

  #end(): void {
    if (this.#hasEnded || this.destroyed) return
    this.#hasEnded = true
    this.push(null)
  }
}

const brokenPipe = (): Error => Object.assign(new Error('the other end is closed'), { code: 'EPIPE' })

/** The two ends of a new in-process connection. */
export function memoryConnection(): readonly [MemorySocket, MemorySocket] {
  const [one, other] = [new MemorySocket(), new MemorySocket()]
  one.other = other
  other.other = one
  return [one, other]
}
