import { WireError } from './wire-error.ts'

/** Bytes of a head, and of a trailer section. */
export const MAX_SECTION_BYTES = 16 * 1024

const TAB = 0x09
const LF = 0x0a
const CR = 0x0d
const SPACE = 0x20
const DEL = 0x7f

const SECTION_END = '\r\n\r\n'
/** Room for a section of which a first piece has come; it doubles from there. */
const FIRST_ROOM_BYTES = 1024
const NOTHING = Buffer.alloc(0)

/**
 * Finds where a section of lines ends, however it is cut into pieces: each byte is looked at once and copied a bounded number
 * of times, and a piece is kept only while more is missing.
 */
export class SectionReader {
  readonly #maxBytes: number
  #held = NOTHING
  #length = 0
  /** Where the section that was read ends, its empty line included, in the bytes that were handed in last. */
  next = 0

  /** @param maxBytes most that a section may have, without the empty line that ends it */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Bytes of a section that is not whole yet. */
  get held(): Buffer {
    return this.#held.subarray(0, this.#length)
  }

  /** How many they are. */
  get heldLength(): number {
    return this.#length
  }

  /**
   * Reads from `at` on; gives the section without the empty line that ends it, undefined while more has to come. Throws `WireError`
   * WIRE_HEAD_TOO_LARGE, and has taken nothing of these bytes then.
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
    this.#makeRoom(length, most)
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

  #makeRoom(length: number, most: number): void {
    if (length <= this.#held.length) return
    const room = Buffer.allocUnsafeSlow(Math.min(most, Math.max(FIRST_ROOM_BYTES, 2 * length)))
    this.#held.copy(room, 0, 0, this.#length)
    this.#held = room
  }
}

/**
 * Whether what has come of a section can still become lines, so that nobody waits for the end of what has none: no control
 * characters, and CR and LF only together. Looks at no byte before `from - 1`.
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
