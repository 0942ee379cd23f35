import { WireError } from './wire-error.ts'

/** Maximum bytes of a head or trailer section. */
export const MAX_SECTION_BYTES = 16 * 1024

const TAB = 0x09
const LF = 0x0a
const CR = 0x0d
const SPACE = 0x20
const DEL = 0x7f

const SECTION_END = '\r\n\r\n'
/** Initial buffer for an incomplete section; doubled as needed. */
const FIRST_ROOM_BYTES = 1024
const NOTHING = Buffer.alloc(0)

/**
 * Finds the end of a section of lines, for any fragmentation: each byte is examined once and copied a bounded number
 * of times, and a piece is kept only while more is missing.
 */
export class SectionReader {
  readonly #maxBytes: number
  #held = NOTHING
  #length = 0
  /** End of the section, including its empty line, in the bytes passed last. */
  next = 0

  /** `maxBytes` is the limit without the final empty line. */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Bytes of an incomplete section. */
  get held(): Buffer {
    return this.#held.subarray(0, this.#length)
  }

  /** Their number. */
  get heldLength(): number {
    return this.#length
  }

  /**
   * Reads from `at` on; returns the section without its final empty line, undefined if it is incomplete. Throws
   * `WireError` WIRE_HEAD_TOO_LARGE without consuming these bytes.
   */
  read(bytes: Buffer, at: number): string | undefined {
    if (this.#length === 0) {
      const end = bytes.indexOf(SECTION_END, at, 'latin1')
      if (end !== -1) {
        if (end - at > this.#maxBytes) throw tooLarge()
        this.next = end + SECTION_END.length
        return bytes.toString('latin1', at, end)
      }
    }
    const before = this.#length
    const most = this.#maxBytes + SECTION_END.length
    const length = Math.min(most, before + bytes.length - at)
    this.#grow(length, most)
    bytes.copy(this.#held, before, at, at + length - before)
    const end = this.#held.subarray(0, length).indexOf(SECTION_END, Math.max(0, before - 3), 'latin1')
    if (end !== -1) {
      this.next = at + end + SECTION_END.length - before
      const text = this.#held.toString('latin1', 0, end)
      this.clear()
      return text
    }
    if (length === most) throw tooLarge()
    this.#length = length
    return undefined
  }

  clear(): void {
    this.#held = NOTHING
    this.#length = 0
  }

  #grow(length: number, most: number): void {
    if (length <= this.#held.length) return
    const grown = Buffer.allocUnsafeSlow(Math.min(most, Math.max(FIRST_ROOM_BYTES, 2 * length)))
    this.#held.copy(grown, 0, 0, this.#length)
    this.#held = grown
  }
}

/**
 * Whether a partial section can still become valid, to fail early: no control characters, and CR and LF only
 * together. Reads no byte before `from - 1`.
 */
export function canBecomeSection(held: Buffer, from: number): boolean {
  for (let at = Math.max(0, from - 1); at < held.length; at++) {
    const byte = held[at] ?? 0
    if (byte === LF ? held[at - 1] !== CR : byte === DEL || (byte < SPACE && byte !== TAB && byte !== CR)) return false
    if (byte === CR && at + 1 < held.length && held[at + 1] !== LF) return false
  }
  return true
}

const tooLarge = (): WireError => new WireError('WIRE_HEAD_TOO_LARGE', 'a head that is too large')
