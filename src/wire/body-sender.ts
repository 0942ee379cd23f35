import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { WireError } from './wire-error.ts'

/** The exchange that waits for the end of a body. */
export interface BodyOwner {
  /** The peer does not read; it does again. */
  onBodyStall(isStalled: boolean): void
  onBodyEnd(): void
  onBodyError(error: Error): void
}

/** Writes a streamed body as fast as it is read, exactly as long as it was announced. */
export class BodySender {
  readonly #socket: Socket
  readonly #stream: Readable
  /** Undefined: in chunks. */
  readonly #length: number | undefined
  readonly #owner: BodyOwner
  #sent = 0
  #isStalled = false
  isOver = false

  /** @param length undefined: in chunks */
  constructor(socket: Socket, stream: Readable, length: number | undefined, owner: BodyOwner) {
    this.#socket = socket
    this.#stream = stream
    this.#length = length
    this.#owner = owner
  }

  start(): void {
    const stream = this.#stream
    // Its events have passed already.
    if (stream.readableEnded || stream.destroyed) {
      process.nextTick(stream.readableEnded ? this.#onEnd : this.#onClose)
      return
    }
    stream.on('data', this.#onData).on('end', this.#onEnd).on('error', this.#onError).on('close', this.#onClose)
    stream.resume()
  }

  /** The connection accepts more data again. */
  drained(): void {
    if (!this.#isStalled || this.isOver) return
    this.#isStalled = false
    this.#owner.onBodyStall(false)
    this.#stream.resume()
  }

  /** Stops sending; the rest stays in the stream. */
  stop(): void {
    if (this.isOver) return
    this.#release()
    this.#stream.pause()
  }

  #release(): void {
    this.isOver = true
    this.#stream
      .off('data', this.#onData)
      .off('end', this.#onEnd)
      .off('error', this.#onError)
      .off('close', this.#onClose)
  }

  readonly #onData = (data: Buffer): void => {
    // An empty chunk would be the last one.
    if (data.length === 0) return
    this.#sent += data.length
    if (this.#length !== undefined && this.#sent > this.#length)
      return this.#fail(wrong('longer than its announced length'))
    // A large piece that the kernel accepted completely leaves the buffer empty.
    if (this.#write(data) || this.#socket.writableLength === 0) return
    this.#isStalled = true
    this.#stream.pause()
    this.#owner.onBodyStall(true)
  }

  #write(data: Buffer): boolean {
    const socket = this.#socket
    if (this.#length !== undefined) return socket.write(data)
    socket.cork()
    socket.write(`${data.length.toString(16)}\r\n`, 'latin1')
    socket.write(data)
    const hasRoom = socket.write('\r\n', 'latin1')
    socket.uncork()
    return hasRoom
  }

  readonly #onEnd = (): void => {
    if (this.isOver) return
    if (this.#length !== undefined && this.#sent !== this.#length)
      return this.#fail(wrong('shorter than its announced length'))
    this.#release()
    if (this.#length === undefined) this.#socket.write('0\r\n\r\n', 'latin1')
    this.#owner.onBodyEnd()
  }

  readonly #onError = (error: Error): void => this.#fail(error)

  readonly #onClose = (): void => {
    if (!this.isOver) this.#fail(wrong('not whole'))
  }

  #fail(error: Error): void {
    if (this.isOver) return
    this.stop()
    this.#owner.onBodyError(error)
  }
}

const wrong = (what: string): WireError => new WireError('WIRE_REQUEST', `a body that is ${what}`)
