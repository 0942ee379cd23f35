import { type AnswerHead, readAnswerHead } from './answer-head.ts'
import { ChunkReader } from './chunk-reader.ts'
import { checkTrailers } from './trailers.ts'
import { type Framing, framingOf } from './framing.ts'
import { canBecomeSection, MAX_SECTION_BYTES, SectionReader } from './section-reader.ts'
import { malformed } from './wire-error.ts'

const NOTHING = Buffer.alloc(0)

/** The first bytes of every head. */
const BEGINNING = 'HTTP/1.'

const IDLE = 0
const HEAD = 1
const LENGTH = 2
const CHUNKS = 3
const TRAILERS = 4
const UNTIL_CLOSE = 5

/** Receives the parsed response. */
export interface AnswerSink {
  /** An interim head, or the final one with its framing. `false` stops reading. */
  onHead(head: AnswerHead, framing: Framing): boolean
  /** `false` stops reading. */
  onBody(data: Buffer): boolean
  /** The response is complete; reading has stopped. */
  onEnd(): void
}

/** Reads the responses of a connection, one after the other. */
export class AnswerReader {
  readonly #sink: AnswerSink
  #state = IDLE
  #isHead = false
  /** Remaining bytes of a body with a length. */
  #left = 0
  #chunks = new ChunkReader()
  readonly #sections = new SectionReader(MAX_SECTION_BYTES)

  constructor(sink: AnswerSink) {
    this.#sink = sink
  }

  /** Expects a response to HEAD or to another method. */
  expect(isHead: boolean): void {
    this.#state = HEAD
    this.#isHead = isHead
  }

  /** Consumes bytes; returns those after the response. Throws `WireError`. */
  read(bytes: Buffer): Buffer {
    let at = 0
    while (at < bytes.length) {
      switch (this.#state) {
        case IDLE:
          return at === 0 ? bytes : bytes.subarray(at)
        case HEAD:
        case TRAILERS:
          at = this.#readSection(bytes, at)
          break
        case CHUNKS:
          at = this.#readChunks(bytes, at)
          break
        default:
          at = this.#readPlain(bytes, at)
      }
    }
    return NOTHING
  }

  /** The peer half-closed; true if that completes a response, which is then reported. */
  end(): boolean {
    if (this.#state !== UNTIL_CLOSE) return false
    this.#finish()
    return true
  }

  /** Stops reading. */
  stop(): void {
    this.#state = IDLE
    this.#sections.clear()
  }

  #readSection(bytes: Buffer, at: number): number {
    const before = this.#sections.heldLength
    const text = this.#sections.read(bytes, at)
    if (text === undefined) {
      this.#checkBegun(before)
      return bytes.length
    }
    const { next } = this.#sections
    this.#section(text)
    // A response without a body ends with its head, wherever the bytes end.
    if (this.#state === LENGTH && this.#left === 0) this.#finish()
    return next
  }

  /** Fails early on a head that cannot become valid. */
  #checkBegun(from: number): void {
    const { held } = this.#sections
    if (this.#state === HEAD && from < BEGINNING.length) {
      const begun = held.toString('latin1', 0, BEGINNING.length)
      if (!BEGINNING.startsWith(begun)) throw malformed('no status line of HTTP/1.1')
    }
    if (!canBecomeSection(held, from)) throw malformed('a control character in the head')
  }

  #section(text: string): void {
    if (this.#state === TRAILERS) {
      checkTrailers(text)
      this.#finish()
      return
    }
    const head = readAnswerHead(text)
    const framing = framingOf(head, this.#isHead)
    const { body } = framing
    const isInterim = head.status < 200 && head.status !== 101
    if (!this.#sink.onHead(head, framing)) return this.stop()
    if (isInterim) return
    if (body === 'chunked') {
      this.#chunks = new ChunkReader()
      this.#state = CHUNKS
    } else if (body === 'until-close') this.#state = UNTIL_CLOSE
    else {
      this.#state = LENGTH
      this.#left = body
    }
  }

  #readChunks(bytes: Buffer, at: number): number {
    const next = this.#chunks.read(bytes, at, this.#onData)
    if (this.#chunks.isOver && this.#state === CHUNKS) this.#state = TRAILERS
    return next
  }

  readonly #onData = (data: Buffer): boolean => {
    const goesOn = this.#sink.onBody(data)
    if (!goesOn) this.stop()
    return goesOn
  }

  #readPlain(bytes: Buffer, at: number): number {
    const there = bytes.length - at
    const taken = this.#state === LENGTH ? Math.min(this.#left, there) : there
    if (this.#state === LENGTH) this.#left -= taken
    const data = taken === bytes.length ? bytes : bytes.subarray(at, at + taken)
    if (!this.#onData(data)) return bytes.length
    if (this.#state === LENGTH && this.#left === 0) this.#finish()
    return at + taken
  }

  #finish(): void {
    this.stop()
    this.#sink.onEnd()
  }
}
