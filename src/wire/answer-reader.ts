import { type AnswerHead, readAnswerHead } from './answer-head.ts'
import { ChunkReader } from './chunk-reader.ts'
import { checkTrailers } from './trailers.ts'
import { type Framing, framingOf } from './framing.ts'
import { canBecomeSection, MAX_SECTION_BYTES, SectionReader } from './section-reader.ts'
import { malformed } from './wire-error.ts'

const NOTHING = Buffer.alloc(0)

/** How a head begins. */
const BEGINNING = 'HTTP/1.'

const IDLE = 0
const HEAD = 1
const LENGTH = 2
const CHUNKS = 3
const TRAILERS = 4
const UNTIL_CLOSE = 5

/** Who is told what has been read. */
export interface AnswerSink {
  /** An interim head, or the final one with its framing. `false`: nothing more is read. */
  onHead(head: AnswerHead, framing: Framing): boolean
  /** `false`: nothing more is read. */
  onBody(data: Buffer): boolean
  /** The answer is whole; nothing more is read. */
  onEnd(): void
}

/** Reads the answers of a connection, one after the other. */
export class AnswerReader {
  readonly #sink: AnswerSink
  #state = IDLE
  #isHead = false
  /** What is left of a body with a length. */
  #left = 0
  #chunks = new ChunkReader()
  readonly #sections = new SectionReader(MAX_SECTION_BYTES)

  constructor(sink: AnswerSink) {
    this.#sink = sink
  }

  /** An answer is expected: to HEAD or to another method. */
  expect(isHead: boolean): void {
    this.#state = HEAD
    this.#isHead = isHead
  }

  /** Takes the next bytes; gives those that belong to no answer. Throws `WireError`. */
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

  /** The peer has ended its side; true when that ends an answer, which is then told. */
  end(): boolean {
    if (this.#state !== UNTIL_CLOSE) return false
    this.#finish()
    return true
  }

  /** Nothing more is read. */
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
    // An answer without a body ends with its head, wherever the bytes do.
    if (this.#state === LENGTH && this.#left === 0) this.#finish()
    return next
  }

  /** Nobody waits for the end of what has none. */
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
