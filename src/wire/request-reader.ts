import { ChunkReader } from './chunk-reader.ts'
import { canBecomeHead, type ReceivedHead, readReceivedHead, requestLineOf } from './received-head.ts'
import { MAX_SECTION_BYTES, SectionReader } from './section-reader.ts'
import { checkTrailers } from './trailers.ts'
import { malformed } from './wire-error.ts'

const CR = 0x0d
const LF = 0x0a

const HEAD = 0
const LENGTH = 1
const CHUNKS = 2
const TRAILERS = 3
const STOPPED = 4
const HELD = 5
const OTHER = 6

/** Receives parsed requests: a head, its body, its end, and then the next one. */
export interface RequestSink {
  /** True: another protocol follows this head and is not parsed. */
  onHead(head: ReceivedHead): boolean
  onBody(data: Buffer): void
  /** The request is complete. False: following data is read after `next`. */
  onEnd(): boolean
}

/**
 * Reads the requests of a connection in sequence. It pauses after each request until its sink calls `next`. It reads
 * nothing after a request that ends its connection.
 */
export class RequestReader {
  readonly #sink: RequestSink
  readonly #heads: SectionReader
  readonly #trailers = new SectionReader(MAX_SECTION_BYTES)
  #state = HEAD
  /** A CR before a head was read: the LF of an empty line follows. */
  #isInEmptyLine = false
  /** The request line of the current head was checked. */
  #hasLine = false
  /** Remaining bytes of a body with a length. */
  #left = 0
  #keeps = true
  #chunks = new ChunkReader()

  constructor(sink: RequestSink, maxHeadBytes: number) {
    this.#sink = sink
    this.#heads = new SectionReader(maxHeadBytes)
  }

  /** Whether it is at the beginning of a head, without any bytes. */
  get isBetween(): boolean {
    return this.#state === HEAD && this.#heads.heldLength === 0
  }

  /** Whether reading has stopped: before `next`, or because another protocol has begun. */
  get isHeld(): boolean {
    return this.#state === HELD || this.#state === OTHER
  }

  /** Whether it is within a head. */
  get isInHead(): boolean {
    return this.#heads.heldLength > 0
  }

  /** Whether it is within a request whose head was reported. */
  get isInBody(): boolean {
    return this.#state === LENGTH || this.#state === CHUNKS || this.#state === TRAILERS
  }

  /**
   * Consumes bytes; returns the unread ones: after a request that is being answered, or of another protocol. Throws
   * `WireError` for an invalid request, after which nothing can be read.
   */
  read(bytes: Buffer): Buffer | undefined {
    let at = 0
    while (at < bytes.length) {
      switch (this.#state) {
        case HEAD:
          at = this.#readHead(bytes, at)
          break
        case LENGTH:
          at = this.#readPlain(bytes, at)
          break
        case CHUNKS:
          at = this.#readChunks(bytes, at)
          break
        case TRAILERS:
          at = this.#readTrailers(bytes, at)
          break
        case HELD:
        case OTHER:
          return at === 0 ? bytes : bytes.subarray(at)
        default:
          return undefined
      }
    }
    return undefined
  }

  /** The response to the last request was sent. */
  next(): void {
    if (this.#state === HELD) this.#state = HEAD
  }

  /** Stops reading; returns whether a head had begun. */
  stop(): boolean {
    const { isInHead } = this
    this.#state = STOPPED
    this.#heads.clear()
    this.#trailers.clear()
    return isInHead
  }

  #readHead(bytes: Buffer, from: number): number {
    const before = this.#heads.heldLength
    const at = before === 0 ? this.#skipEmptyLines(bytes, from) : from
    if (at === bytes.length) return at
    const text = this.#heads.read(bytes, at)
    if (text === undefined) {
      this.#checkBegun(before)
      return bytes.length
    }
    this.#hasLine = false
    this.#begin(before === 0 ? readReceivedHead(text, bytes, at) : readReceivedHead(text))
    return this.#heads.next
  }

  /** Empty lines before a request are ignored (RFC 9112 §2.2). */
  #skipEmptyLines(bytes: Buffer, from: number): number {
    let at = from
    while (at < bytes.length) {
      const byte = bytes[at]
      if (this.#isInEmptyLine ? byte !== LF : byte !== CR) break
      this.#isInEmptyLine = !this.#isInEmptyLine
      at++
    }
    if (this.#isInEmptyLine && at < bytes.length) throw malformed('a CR without LF')
    return at
  }

  /** Fails early on a head that cannot become valid. */
  #checkBegun(before: number): void {
    const { held } = this.#heads
    if (!canBecomeHead(held, before)) throw malformed('no request of HTTP/1.1 or 1.0')
    if (this.#hasLine) return
    const end = held.indexOf('\r\n', Math.max(0, before - 1), 'latin1')
    if (end === -1) return
    this.#hasLine = true
    requestLineOf(held.toString('latin1', 0, end))
  }

  #begin(head: ReceivedHead): void {
    const { body } = head
    this.#keeps = head.keeps
    if (body === 'chunked') {
      this.#chunks = new ChunkReader()
      this.#state = CHUNKS
    } else {
      this.#state = LENGTH
      this.#left = body
    }
    if (this.#sink.onHead(head)) this.#state = OTHER
    else if (body === 0) this.#finish()
  }

  #readPlain(bytes: Buffer, at: number): number {
    const end = Math.min(bytes.length, at + this.#left)
    this.#left -= end - at
    this.#sink.onBody(bytes.subarray(at, end))
    if (this.#left === 0) this.#finish()
    return end
  }

  #readChunks(bytes: Buffer, at: number): number {
    const next = this.#chunks.read(bytes, at, this.#onData)
    if (this.#chunks.isOver && this.#state === CHUNKS) this.#state = TRAILERS
    return next
  }

  readonly #onData = (data: Buffer): boolean => {
    this.#sink.onBody(data)
    return this.#state === CHUNKS
  }

  #readTrailers(bytes: Buffer, at: number): number {
    const text = this.#trailers.read(bytes, at)
    if (text === undefined) return bytes.length
    checkTrailers(text)
    this.#finish()
    return this.#trailers.next
  }

  #finish(): void {
    if (this.#state === STOPPED) return
    this.#state = this.#keeps ? HELD : STOPPED
    if (this.#sink.onEnd()) this.next()
  }
}
