/** Bytes without escapes. */
export interface Folded {
  readonly bytes: Buffer
  /** Where a byte began in what they were made of; one after the last is its end. */
  startOf(at: number): number
}

const BACKSLASH = 0x5c
const PERCENT = 0x25
const AMPERSAND = 0x26
const CONTROLS: Readonly<Record<number, number>> = { 0x62: 8, 0x66: 12, 0x6e: 10, 0x72: 13, 0x74: 9 }
const ENTITIES: Readonly<Record<string, number>> = {
  amp: 0x26,
  apos: 0x27,
  equals: 0x3d,
  gt: 0x3e,
  lt: 0x3c,
  plus: 0x2b,
  quot: 0x22,
  sol: 0x2f,
}
/** `&#x10ffff` and the longest name. */
const MAX_ENTITY = 9
/** `\u{` and six digits. */
const MAX_BRACED = 9

/**
 * A text without what JSON, programming languages, URLs and HTML write for a character, however deep it is nested, for
 * finding a text in it whatever it was written as: `\u002B`, `\x2b`, `\/`, `%2B`, `&#43;`, `\\u002B`. NULs are left out, so
 * that UTF-16 reads as ASCII does. Takes UTF-8, in linear time; undefined for a text that has nothing of the kind.
 */
export function folded(text: Uint8Array): Folded | undefined {
  if (!text.includes(BACKSLASH) && !text.includes(PERCENT) && !text.includes(AMPERSAND) && !text.includes(0))
    return undefined
  const bytes = readAll(text, new Fold(text.length)).bytes
  let starts: Uint32Array | undefined
  return {
    bytes,
    startOf(at) {
      // Nearly always nothing is found, and nobody asks where.
      starts ??= readAll(text, new Fold(text.length, new Uint32Array(text.length + 1))).starts
      return (at < bytes.length ? starts?.[at] : undefined) ?? text.length
    },
  }
}

function readAll(text: Uint8Array, fold: Fold): Fold {
  for (let index = 0; index < text.length; index++) fold.push(text[index] ?? 0, index)
  return fold
}

/** What is read so far; each escape is put together as its last character arrives, and what it stands for may end another. */
class Fold {
  readonly #bytes: Buffer
  readonly starts: Uint32Array | undefined
  #length = 0

  constructor(most: number, starts?: Uint32Array) {
    this.#bytes = Buffer.allocUnsafe(most)
    this.starts = starts
  }

  get bytes(): Buffer {
    return this.#bytes.subarray(0, this.#length)
  }

  push(byte: number, start: number): void {
    if (byte === 0) return
    if (this.#at(1) === BACKSLASH && this.#escaped(byte)) return
    this.#bytes[this.#length] = byte
    if (this.starts !== undefined) this.starts[this.#length] = start
    this.#length++
    if (isHex(byte)) this.#hexEnded()
    else if (byte === 0x7d) this.#bracesEnded()
    else if (byte === 0x3b) this.#entityEnded()
  }

  /** The byte so many from the end; 1 is the last. */
  #at(back: number): number {
    return back > this.#length ? 0 : (this.#bytes[this.#length - back] ?? 0)
  }

  /** What stands after a backslash: nested escapes have any number of them. True when it is no escape of more characters. */
  #escaped(byte: number): boolean {
    if (byte === BACKSLASH) return true
    const control = CONTROLS[byte]
    if (control === undefined && isWord(byte)) return false
    const start = this.starts?.[this.#length - 1] ?? 0
    this.#length--
    this.push(control ?? byte, start)
    return true
  }

  #hexEnded(): void {
    if (this.#at(3) === PERCENT && isHex(this.#at(2))) return this.#replace(3, this.#hex(2, 0), true)
    const introducer = (digits: number): number => (this.#at(digits + 2) === BACKSLASH ? this.#at(digits + 1) : 0)
    if (introducer(2) === 0x78) return this.#replaceHex(2)
    if (introducer(4) === 0x75) return this.#replaceHex(4)
    if (introducer(8) === 0x55) this.#replaceHex(8)
  }

  #replaceHex(digits: number): void {
    const point = this.#hex(digits, 0)
    if (!Number.isNaN(point)) this.#replace(digits + 2, point, false)
  }

  #bracesEnded(): void {
    for (let back = 2; back <= MAX_BRACED + 1; back++) {
      if (this.#at(back) !== 0x7b) continue
      if (this.#at(back + 1) !== 0x75 || this.#at(back + 2) !== BACKSLASH) return
      const point = this.#hex(back - 2, 1)
      if (back > 2 && !Number.isNaN(point)) this.#replace(back + 2, point, false)
      return
    }
  }

  #entityEnded(): void {
    for (let back = 3; back <= MAX_ENTITY + 1; back++) {
      if (this.#at(back) !== AMPERSAND) continue
      const name = String.fromCharCode(...this.#bytes.subarray(this.#length - back + 1, this.#length - 1))
      const [, base, digits] = /^#(x?)([0-9a-f]{1,7})$/i.exec(name) ?? []
      const point = digits === undefined ? ENTITIES[name] : Number.parseInt(digits, base === '' ? 10 : 16)
      if (point !== undefined) this.#replace(back, point, false)
      return
    }
  }

  /** The value of so many hex digits that end so far before the end; NaN when they are none. */
  #hex(digits: number, before: number): number {
    let value = 0
    for (let back = digits + before; back > before; back--) {
      const byte = this.#at(back)
      if (!isHex(byte)) return Number.NaN
      value = value * 16 + (byte <= 0x39 ? byte - 0x30 : (byte & 0x0f) + 9)
    }
    return value
  }

  /** Puts a byte, or a character in UTF-8, in the place of the last `count` bytes. */
  #replace(count: number, value: number, isByte: boolean): void {
    if (value > 0x10_ffff) return
    this.#length -= count
    const joined = isByte ? value : this.#joined(value)
    const start = this.starts?.[this.#length] ?? 0
    if (isByte || joined < 0x80) return this.push(joined, start)
    for (const byte of utf8Of(joined)) this.push(byte, start)
  }

  /** The second half of a surrogate pair takes the first one with it. */
  #joined(value: number): number {
    if (value < 0xdc00 || value > 0xdfff || this.#at(3) !== 0xed || this.#at(2) < 0xa0 || this.#at(2) > 0xaf)
      return value
    const high = 0xd000 | ((this.#at(2) & 0x3f) << 6) | (this.#at(1) & 0x3f)
    this.#length -= 3
    return 0x1_0000 + ((high - 0xd800) << 10) + (value - 0xdc00)
  }
}

/** UTF-8 of any code point, surrogates too: they wait for their other half. */
function utf8Of(point: number): number[] {
  const last = (shift: number): number => 0x80 | ((point >> shift) & 0x3f)
  if (point < 0x800) return [0xc0 | (point >> 6), last(0)]
  if (point < 0x1_0000) return [0xe0 | (point >> 12), last(6), last(0)]
  return [0xf0 | (point >> 18), last(12), last(6), last(0)]
}

const isHex = (byte: number): boolean =>
  (byte >= 0x30 && byte <= 0x39) || (byte >= 0x41 && byte <= 0x46) || (byte >= 0x61 && byte <= 0x66)

const isWord = (byte: number): boolean =>
  (byte >= 0x30 && byte <= 0x39) || (byte >= 0x41 && byte <= 0x5a) || (byte >= 0x61 && byte <= 0x7a) || byte >= 0x80
