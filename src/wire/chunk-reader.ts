import { malformed } from './wire-error.ts'

const CR = 0x0d
const LF = 0x0a
const SEMICOLON = 0x3b

/** Maximum digits of a chunk size: 2⁵² bytes. */
const MAX_DIGITS = 13
/** Maximum characters of the extensions of one chunk, which are dropped, and of all chunks together. */
const MAX_EXTENSIONS = 256
const MAX_ALL_EXTENSIONS = 16 * 1024
/** Smaller chunks that arrive together are joined: each costs its consumer more than a copy. */
const JOINED_BYTES = 4096

/** RFC 9112 §7.1.1, without whitespace. */
const EXTENSIONS =
  /^(?:;[!#$%&'*+\-.^_`|~0-9A-Za-z]+(?:=(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+|"(?:[\t\x20\x21\x23-\x5b\x5d-\x7e]|\\[\t\x20-\x7e])*"))?)*$/

const SIZE = 0
const EXTENSION = 1
const SIZE_LF = 2
const DATA = 3
const DATA_CR = 4
const DATA_LF = 5

/**
 * Reads chunks (RFC 9112 §7.1): hexadecimal size, extensions, CRLF, data, CRLF. It stops behind the digits of the
 * last chunk, whose CRLF begins the trailer section.
 */
export class ChunkReader {
  #state = SIZE
  #size = 0
  #digits = 0
  #extensions = ''
  #allExtensions = 0
  /** Data of small chunks that was not passed on, in one piece or joined. */
  #joined: Buffer | undefined = undefined
  #joinedLength = 0
  /** The last chunk was read. */
  isOver = false

  /**
   * Reads from `at` up to the end of the bytes or of the chunks; returns where it stopped. Data goes to `onData`,
   * which returns false to stop; small chunks are joined. Throws `WireError` after passing on all valid data.
   */
  read(bytes: Buffer, at: number, onData: (data: Buffer) => boolean): number {
    let next: number
    try {
      next = this.#read(bytes, at, onData)
    } catch (error) {
      this.#handOut(onData)
      throw error
    }
    return this.#handOut(onData) ? next : bytes.length
  }

  #read(bytes: Buffer, from: number, onData: (data: Buffer) => boolean): number {
    let at = from
    while (at < bytes.length) {
      if (this.#state === DATA) {
        const end = Math.min(bytes.length, at + this.#size)
        this.#size -= end - at
        if (this.#size === 0) this.#state = DATA_CR
        const data = bytes.subarray(at, end)
        if (data.length < JOINED_BYTES) this.#join(data, bytes.length - at)
        else if (!this.#handOut(onData) || !onData(data)) return bytes.length
        at = end
        continue
      }
      const byte = bytes[at] ?? 0
      if (byte === CR && this.#isLast()) {
        this.isOver = true
        return at
      }
      this.#step(byte)
      at++
    }
    return at
  }

  /** `capacity` is the number of bytes that may still follow, including `data`. */
  #join(data: Buffer, capacity: number): void {
    const joined = this.#joined
    if (joined === undefined) {
      this.#joined = data
      this.#joinedLength = data.length
      return
    }
    let into = joined
    if (joined.length === this.#joinedLength) {
      into = Buffer.allocUnsafe(joined.length + capacity)
      joined.copy(into)
      this.#joined = into
    }
    data.copy(into, this.#joinedLength)
    this.#joinedLength += data.length
  }

  #handOut(onData: (data: Buffer) => boolean): boolean {
    const joined = this.#joined
    if (joined === undefined) return true
    this.#joined = undefined
    return onData(joined.length === this.#joinedLength ? joined : joined.subarray(0, this.#joinedLength))
  }

  /** Whether digits and extensions are those of the last chunk. */
  #isLast(): boolean {
    if (this.#size !== 0 || this.#digits === 0) return false
    if (this.#state === EXTENSION) checkExtensions(this.#extensions)
    return this.#state === SIZE || this.#state === EXTENSION
  }

  #step(byte: number): void {
    switch (this.#state) {
      case SIZE:
        return this.#readSize(byte)
      case EXTENSION:
        return this.#readExtension(byte)
      case SIZE_LF:
        if (byte !== LF) throw malformed('a broken chunk')
        this.#state = DATA
        return
      case DATA_CR:
        if (byte !== CR) throw malformed('a chunk that is longer than its announced length')
        this.#state = DATA_LF
        return
      default:
        if (byte !== LF) throw malformed('a broken chunk')
        this.#state = SIZE
        this.#digits = 0
    }
  }

  #readSize(byte: number): void {
    const digit = digitOf(byte)
    if (digit !== -1) {
      if (++this.#digits > MAX_DIGITS) throw malformed('a chunk that is too large')
      this.#size = this.#size * 16 + digit
    } else if (byte === CR && this.#digits > 0) this.#state = SIZE_LF
    else if (byte === SEMICOLON && this.#digits > 0) {
      this.#state = EXTENSION
      this.#extensions = ';'
    } else throw malformed('a chunk without a size')
  }

  #readExtension(byte: number): void {
    if (byte !== CR) {
      this.#extensions += String.fromCharCode(byte)
      if (this.#extensions.length > MAX_EXTENSIONS) throw malformed('extensions of a chunk that are too long')
      if (++this.#allExtensions > MAX_ALL_EXTENSIONS) throw malformed('extensions of chunks that are too long together')
      return
    }
    checkExtensions(this.#extensions)
    this.#state = SIZE_LF
  }
}

function checkExtensions(text: string): void {
  if (!EXTENSIONS.test(text)) throw malformed('extensions of a chunk that are none')
}

/** Value of a hexadecimal digit; -1 for anything else. */
function digitOf(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30
  const lower = byte | 0x20
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1
}
