import { EventEmitter } from 'node:events'
import type { Socket } from 'node:net'
import type { ClientResponse } from '../core/index.ts'
import { type AnswerHeadWritten, writeAnswerHead, writeInterimHead } from './answer-writer.ts'
import type { ReceivedHead } from './received-head.ts'

/** Smaller pieces are copied into one; larger ones are written unchanged, together. */
const ONE_PIECE_BYTES = 16 * 1024
const NOTHING = Buffer.alloc(0)
const OK = 200
const CHUNKS_END = '0\r\n\r\n'

/** The connection of the response. */
export interface ResponseOwner {
  /** Value of `Keep-Alive`; undefined for none. */
  readonly keepAlive: string | undefined
  /** The response was sent completely. Called once. */
  onAnswered(response: ServedResponse): void
  /** There is no response: the connection switches to another protocol. */
  onDetached(): void
}

/** A response: its head is sent with the first piece of the body, or when flushed. */
export class ServedResponse extends EventEmitter implements ClientResponse {
  shouldKeepAlive: boolean
  chunkedEncoding = false
  writableEnded = false
  writableFinished = false
  writableNeedDrain = false
  destroyed = false
  socket: Socket | null = null
  /** The connection ends with it, regardless of its head. */
  isLast = false
  readonly #isHead: boolean
  readonly #isOld: boolean
  /** Without `100 Continue` the client may send its body or not: following data is ambiguous. */
  #isHesitant: boolean
  readonly #owner: ResponseOwner
  #head: AnswerHeadWritten | undefined = undefined
  #isHeadOut = false
  /** Bytes of the body sent so far. */
  #sent = 0
  #isClosed = false

  constructor({ method, isOld, keeps, expects }: ReceivedHead, isUpgrade: boolean, owner: ResponseOwner) {
    super()
    this.#isHead = method === 'HEAD'
    this.#isOld = isOld
    this.#isHesitant = expects === 'continue'
    this.shouldKeepAlive = keeps && !isUpgrade
    this.#owner = owner
  }

  get headersSent(): boolean {
    return this.#head !== undefined
  }

  /** Whether the connection is kept after it. */
  get keeps(): boolean {
    return !this.isLast && this.#head?.keeps === true
  }

  writeHead(status: number, headers: readonly string[] = []): this {
    if (this.#head !== undefined) throw new Error('the head of this response was sent already')
    this.#fix(status, headers, undefined)
    return this
  }

  flushHeaders(): void {
    if (this.#head === undefined) this.#fix(OK, [], undefined)
    if (!this.#isHeadOut) this.#send(undefined, false, undefined)
  }

  write(chunk: Buffer | string): boolean {
    if (this.writableEnded || this.destroyed) return false
    if (this.#head === undefined) this.#fix(OK, [], undefined)
    // A large piece that the kernel has accepted completely leaves the buffer empty.
    const hasRoom = this.#send(bytesOf(chunk), false, undefined) || isEmpty(this.socket)
    if (!hasRoom) this.writableNeedDrain = true
    return hasRoom
  }

  end(chunk?: Buffer | string): this {
    if (this.writableEnded) return this
    const data = chunk === undefined ? undefined : bytesOf(chunk)
    if (this.#head === undefined) this.#fix(OK, [], data?.length ?? 0)
    this.writableEnded = true
    this.#send(data, true, this.#onWritten)
    return this
  }

  writeContinue(): void {
    this.#isHesitant = false
    this.writeInterim(100, [])
  }

  writeInterim(status: number, headers: readonly string[]): void {
    // HTTP/1.0 has none (RFC 9110 §15.2).
    if (this.#isOld) return
    const head = writeInterimHead(status, headers)
    if (this.#head === undefined && this.socket?.writable === true) this.socket.write(head, 'latin1')
  }

  destroy(error?: Error): this {
    this.destroyed = true
    this.socket?.destroy(error)
    return this
  }

  /** Its turn on the connection has come. */
  assignSocket(socket: Socket): void {
    this.socket = socket
  }

  detachSocket(): void {
    this.socket = null
    this.#owner.onDetached()
  }

  /** It was sent. */
  release(): void {
    this.socket = null
  }

  /** The client reads again. */
  drained(): void {
    if (!this.writableNeedDrain) return
    this.writableNeedDrain = false
    this.emit('drain')
  }

  /** Ends the response: it was sent, or its connection was closed. */
  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.destroyed = true
    this.emit('close')
  }
  readonly #onWritten = (error?: Error | null): void => {
    // The connection has closed with it and reports the error.
    if (error) return
    this.writableFinished = true
    this.emit('finish')
    this.#owner.onAnswered(this)
  }

  #fix(status: number, headers: readonly string[], length: number | undefined): void {
    this.#head = writeAnswerHead(status, headers, {
      isHead: this.#isHead,
      isOld: this.#isOld,
      keeps: this.shouldKeepAlive && !this.#isHesitant,
      keepAlive: this.#owner.keepAlive,
      length,
    })
    this.chunkedEncoding = this.#head.isChunked
  }

  /** Writes pending head, piece and end at once. */
  #send(data: Buffer | undefined, isEnd: boolean, onWritten: ((error?: Error | null) => void) | undefined): boolean {
    const { socket } = this
    const head = this.#head
    // A refusal may have been written instead.
    if (socket === null || !socket.writable || head === undefined) return false
    let body = head.hasBody && data !== undefined ? data : NOTHING
    this.#sent += body.length
    if (isOtherThanSaid(head, this.#sent, isEnd)) {
      // A wrong length would corrupt the next response.
      this.destroy()
      return false
    }
    let before = this.#isHeadOut ? '' : head.text
    this.#isHeadOut = true
    let after = ''
    if (head.isChunked) {
      if (body.length > 0) {
        before += `${body.length.toString(16)}\r\n`
        after = '\r\n'
      }
      if (isEnd) after += CHUNKS_END
    }
    if (before.length + body.length + after.length === 0) {
      if (onWritten === undefined) return true
      body = NOTHING
    }
    if (body.length > ONE_PIECE_BYTES) {
      socket.cork()
      if (before !== '') socket.write(before, 'latin1')
      let hasRoom = socket.write(body, after === '' ? onWritten : undefined)
      if (after !== '') hasRoom = socket.write(after, 'latin1', onWritten)
      socket.uncork()
      return hasRoom
    }
    if (body.length === 0) return socket.write(before + after, 'latin1', onWritten)
    if (before === '' && after === '') return socket.write(body, onWritten)
    return socket.write(joined(before, body, after), onWritten)
  }
}

const isOtherThanSaid = ({ isChunked, hasBody, length }: AnswerHeadWritten, sent: number, isEnd: boolean): boolean =>
  hasBody && !isChunked && length !== undefined && (isEnd ? sent !== length : sent > length)

const isEmpty = (socket: Socket | null): boolean => socket?.writable === true && socket.writableLength === 0

const bytesOf = (chunk: Buffer | string): Buffer => (typeof chunk === 'string' ? Buffer.from(chunk) : chunk)

function joined(before: string, body: Buffer, after: string): Buffer {
  const bytes = Buffer.allocUnsafe(before.length + body.length + after.length)
  bytes.write(before, 0, 'latin1')
  body.copy(bytes, before.length)
  if (after !== '') bytes.write(after, before.length + body.length, 'latin1')
  return bytes
}
