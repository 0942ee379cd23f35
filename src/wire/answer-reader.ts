import { type AnswerHead, readAnswerHead } from './answer-head.ts'
import { ChunkReader } from './chunk-reader.ts'
import { checkTrailers } from './trailers.ts'
import { type Framing, framingOf } from './framing.ts'
import { WireError } from './wire-error.ts'

/** Bytes of a head, and of a trailer section. */
export const MAX_SECTION_BYTES = 16 * 1024

const SECTION_END = '\r\n\r\n'
const NOTHING = Buffer.alloc(0)

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
  /** Beginning of a section that came in several pieces. */
  #held: Buffer | undefined
  #heldBytes = 0

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
    this.#held = undefined
  }

  #readSection(bytes: Buffer, at: number): number {
    if (this.#held === undefined) {
      const end = bytes.indexOf(SECTION_END, at, 'latin1')
      if (end !== -1) {
        if (end - at > MAX_SECTION_BYTES) throw tooLarge()
        this.#section(bytes.toString('latin1', at, end))
        return this.#after(bytes, end + SECTION_END.length)
      }
      this.#held = Buffer.allocUnsafe(MAX_SECTION_BYTES + SECTION_END.length)
      this.#heldBytes = 0
    }
    const held = this.#held
    const before = this.#heldBytes
    const copied = bytes.copy(held, before, at)
    this.#heldBytes += copied
    const end = held.subarray(0, this.#heldBytes).indexOf(SECTION_END, Math.max(0, before - 3), 'latin1')
    if (end === -1) {
      if (this.#heldBytes === held.length) throw tooLarge()
      return bytes.length
    }
    this.#held = undefined
    this.#section(held.toString('latin1', 0, end))
    return this.#after(bytes, at + end + SECTION_END.length - before)
  }

  /** An answer without a body ends with its head, wherever the bytes do. */
  #after(bytes: Buffer, at: number): number {
    if (this.#state === LENGTH && this.#left === 0) this.#finish()
    return Math.min(at, bytes.length)
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

const tooLarge = (): WireError => new WireError('WIRE_HEAD_TOO_LARGE', 'a head that is too large')
