import { ChunkReader } from './chunk-reader.ts'
import { canBecomeHead, type ReceivedHead, readReceivedHead, type Strange } from './received-head.ts'
import { MAX_SECTION_BYTES, SectionReader } from './section-reader.ts'
import { checkTrailers } from './trailers.ts'
import { WireError } from './wire-error.ts'

const HEAD = 0
const LENGTH = 1
const CHUNKS = 2
const TRAILERS = 3
const STOPPED = 4
const HELD = 5

/** Who is told what has been read: a head, its body, its end, and then the next one. */
export interface RequestSink {
  onHead(head: ReceivedHead): void
  onBody(data: Buffer): void
  /** The request is whole. False: what follows it is read after `next`. */
  onEnd(): boolean
}

/** Bytes that were not read: from a head on that is not taken, or behind a request that is still being answered (`next`). */
export interface Unread {
  readonly why: Strange | 'next'
  readonly bytes: Buffer
}

/**
 * Reads the requests of a connection, one after the other, as long as each is what the strict grammar takes (see
 * `readReceivedHead`). The first that is not, or whose head is too large, ends it: all that was not read is given back. It stops
 * behind each request for as long as its sink wants. Behind a request that said `Connection: close` nothing is read.
 */
export class RequestReader {
  readonly #sink: RequestSink
  readonly #heads: SectionReader
  readonly #trailers = new SectionReader(MAX_SECTION_BYTES)
  #state = HEAD
  /** What is left of a body with a length. */
  #left = 0
  #keeps = true
  #chunks = new ChunkReader()

  /** @param maxHeadBytes larger heads are not taken; at most 16 KiB */
  constructor(sink: RequestSink, maxHeadBytes: number) {
    this.#sink = sink
    this.#heads = new SectionReader(Math.min(maxHeadBytes, MAX_SECTION_BYTES))
  }

  /** Whether it is at the beginning of a head of which nothing has come. */
  get isBetween(): boolean {
    return this.#state === HEAD && this.#heads.heldLength === 0
  }

  /** Whether it waits for `next`. */
  get isHeld(): boolean {
    return this.#state === HELD
  }

  /** Whether it is within a head. */
  get isInHead(): boolean {
    return this.#heads.heldLength > 0
  }

  /** Whether it is within a request whose head was told. */
  get isInBody(): boolean {
    return this.#state === LENGTH || this.#state === CHUNKS || this.#state === TRAILERS
  }

  /** Takes the next bytes. Throws `WireError` for a body that is none; nothing can be read behind that. */
  read(bytes: Buffer): Unread | undefined {
    let at = 0
    while (at < bytes.length) {
      switch (this.#state) {
        case HEAD: {
          const unread = this.#readHead(bytes, at)
          if (unread !== undefined) return unread
          at = this.#heads.next
          break
        }
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
          return { why: 'next', bytes: at === 0 ? bytes : bytes.subarray(at) }
        default:
          return undefined
      }
    }
    return undefined
  }

  /** The answer to the request that was read last is out. */
  next(): void {
    if (this.#state === HELD) this.#state = HEAD
  }

  /** Nothing more is read; gives what has come of a head. */
  stop(): Buffer {
    const { held } = this.#heads
    this.#state = STOPPED
    this.#heads.clear()
    this.#trailers.clear()
    return held
  }

  #readHead(bytes: Buffer, at: number): Unread | undefined {
    const before = this.#heads.heldLength
    let text: string | undefined
    try {
      text = this.#heads.read(bytes, at)
    } catch (error) {
      if (!(error instanceof WireError)) throw error
      return { why: 'strange', bytes: Buffer.concat([this.stop(), bytes.subarray(at)]) }
    }
    if (text === undefined) {
      this.#heads.next = bytes.length
      return canBecomeHead(this.#heads.held, before) ? undefined : { why: 'strange', bytes: this.stop() }
    }
    const head = before === 0 ? readReceivedHead(text, bytes, at) : readReceivedHead(text)
    if (typeof head === 'object' && 'method' in head) {
      this.#begin(head)
      return undefined
    }
    this.stop()
    // What came in earlier pieces is only here: Latin-1 has each byte as it was.
    return {
      why: head,
      bytes: Buffer.concat([Buffer.from(`${text}\r\n\r\n`, 'latin1'), bytes.subarray(this.#heads.next)]),
    }
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
    this.#sink.onHead(head)
    if (body === 0) this.#finish()
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
