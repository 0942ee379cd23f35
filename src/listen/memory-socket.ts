import { Duplex } from 'node:stream'

/** How a stream hears that a chunk was taken. */
type Callback = (error?: Error | null) => void

/**
 * One end of a connection inside the process, with as much of a socket's shape as HTTP code asks for. Whoever writes waits
 * for whoever reads, and an end that is destroyed shows at the other as it would on a socket: what was sent still
 * arrives, then the end, and writing fails with EPIPE.
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

  /** Closes as soon as what was written has been taken, as `net.Socket` has it. */
  destroySoon(): void {
    if (this.writable) this.end()
    if (this.writableFinished) this.destroy()
    else this.once('finish', () => this.destroy())
  }

  // What a socket can be told and memory need not know.
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

/** The two ends of a new connection inside the process. */
export function memoryConnection(): readonly [MemorySocket, MemorySocket] {
  const [one, other] = [new MemorySocket(), new MemorySocket()]
  one.other = other
  other.other = one
  return [one, other]
}
