import { randomInt } from 'node:crypto'

/** So many characters of a secret in a row are a piece of it; fewer say nothing that helps anybody. */
const PIECE = 12
/** So many characters of plain words are a secret; fewer are what paths and names are made of (`bearer-token`). */
const WORDS = 20
/** What is looked at first, of each `STRIDE`th place: three bytes. No piece lies between two of them. */
const QUANTUM = 3
const STRIDE = PIECE - QUANTUM + 1
/** Of bytes in threes, a piece holds so many in a row, wherever it begins. */
export const QUANTA_OF_PIECE = 3
/** Bits for each of them that are marked: one that is not is taken for one in so many. */
const BITS_OF_MARK = 64
/** The beginning of a short text. */
const SAMPLE = 4
/** Many texts are looked at once, with little in them that looks alike: the table is made after so many looks without it. */
const LOOKS_WITHOUT_TABLE = 64
/** Nobody outside knows which texts meet in one place of the tables. */
const SEED = randomInt(2 ** 31)

/** Told of each stretch that was found, in order; the end is exclusive. */
export type OnFound = (from: number, to: number) => void

/** All pieces of some texts, for finding what a text has of them. */
export class PieceIndex {
  readonly #long: readonly Buffer[]
  readonly #texts: Buffer
  /** A bit for each three bytes of the texts. */
  readonly #marks: Uint8Array
  /** Where each piece stands, plus one; open addressing. Undefined until a text was found to have something. */
  #table: Uint32Array | undefined
  #looks = 0
  readonly #short: ShortTexts | undefined
  /** Fewest bytes that are worth looking at. */
  readonly shortest: number
  readonly isAscii: boolean

  constructor(texts: readonly Buffer[]) {
    this.#long = texts.filter(({ length }) => length >= PIECE)
    const short = texts.filter((text) => text.length < PIECE || isFewWords(text, 0, text.length))
    this.#short = short.length === 0 ? undefined : new ShortTexts(short)
    this.shortest = Math.min(PIECE, ...texts.map(({ length }) => length))
    this.isAscii = texts.every((text) => text.every((byte) => byte < 0x80))
    const [only] = this.#long
    this.#texts = only !== undefined && this.#long.length === 1 ? only : Buffer.concat(this.#long)
    const bits = 2 ** Math.ceil(Math.log2(BITS_OF_MARK * texts.reduce((sum, { length }) => sum + length, QUANTUM)))
    this.#marks = new Uint8Array(bits / 8)
    for (const text of texts)
      for (let at = 0; at + QUANTUM <= text.length; at++) {
        const bit = mixed(quantumAt(text, at) ^ SEED) & (bits - 1)
        this.#marks[bit >> 3] = (this.#marks[bit >> 3] ?? 0) | (1 << (bit & 7))
      }
  }

  /** True when a text has three bytes of its own that this number is, first byte highest; now and then of others. */
  isMarked(quantum: number): boolean {
    const bit = mixed(quantum ^ SEED) & (8 * this.#marks.length - 1)
    return ((this.#marks[bit >> 3] ?? 0) & (1 << (bit & 7))) !== 0
  }

  /** Some are shorter than a piece. */
  get hasShort(): boolean {
    return this.shortest < PIECE
  }

  /** True when a text that is shorter than a piece has these three bytes. */
  isInShort(quantum: number): boolean {
    return this.#short?.quanta.has(quantum) === true
  }

  /** Finds what a text has of the texts: whole short ones, and pieces of the others, put together where they overlap. */
  find(text: Uint8Array, onFound: OnFound): void {
    this.#short?.find(text, onFound)
    if (this.#texts.length === 0) return
    let [from, to] = [0, 0]
    const found = (): void => {
      if (to > 0 && !isFewWords(text, from, to)) onFound(from, to)
    }
    for (let at = 0; at + QUANTUM <= text.length; at += STRIDE) {
      if (!this.#mayHave(text, at)) continue
      const end = Math.min(at, text.length - PIECE)
      for (let piece = Math.max(0, at - STRIDE + 1); piece <= end; piece++) {
        if (!this.#has(text, piece)) continue
        if (piece > to) found()
        if (piece > to || to === 0) from = piece
        to = piece + PIECE
      }
    }
    found()
  }

  /** Whether a piece may lie around a place: of what is looked at next to it, it has one as well. */
  #mayHave(text: Uint8Array, at: number): boolean {
    if (!this.#isMarkedAt(text, at)) return false
    const before = this.#isMarkedAt(text, at - QUANTUM)
    const after = this.#isMarkedAt(text, at + QUANTUM)
    if ((!before && !after) || this.#table !== undefined) return before || after
    // Whether the marks were right; true, too, once it has been asked often.
    this.#looks += 1
    if (this.#looks > LOOKS_WITHOUT_TABLE) return true
    const has = (from: number): boolean => this.#texts.indexOf(text.subarray(from, from + 2 * QUANTUM)) !== -1
    return (before && has(at - QUANTUM)) || (after && has(at))
  }

  #isMarkedAt(text: Uint8Array, at: number): boolean {
    return at >= 0 && at + QUANTUM <= text.length && this.isMarked(quantumAt(text, at))
  }

  #makeTable(): Uint32Array {
    const table = new Uint32Array(2 ** Math.ceil(Math.log2(2 * this.#texts.length + 16)))
    let start = 0
    for (const { length } of this.#long) {
      for (let at = start; at <= start + length - PIECE; at++) this.#insert(table, at)
      start += length
    }
    return table
  }

  #insert(table: Uint32Array, at: number): void {
    const mask = table.length - 1
    let slot = hashOfPiece(this.#texts, at) & mask
    for (let there = table[slot] ?? 0; there !== 0; there = table[slot] ?? 0) {
      if (this.#isAt(there - 1, this.#texts, at)) return
      slot = (slot + 1) & mask
    }
    table[slot] = at + 1
  }

  #has(text: Uint8Array, at: number): boolean {
    const table = (this.#table ??= this.#makeTable())
    const mask = table.length - 1
    let slot = hashOfPiece(text, at) & mask
    for (let there = table[slot] ?? 0; there !== 0; there = table[slot] ?? 0) {
      if (this.#isAt(there - 1, text, at)) return true
      slot = (slot + 1) & mask
    }
    return false
  }

  #isAt(there: number, text: Uint8Array, at: number): boolean {
    for (let index = 0; index < PIECE; index++) if (this.#texts[there + index] !== text[at + index]) return false
    return true
  }
}

/** Lower-case letters and what stands between words, and not many of them: no token looks like that by chance. */
function isFewWords(text: Uint8Array, from: number, to: number): boolean {
  if (to - from >= WORDS) return false
  for (let at = from; at < to; at++) {
    const byte = text[at] ?? 0
    if ((byte < 0x61 || byte > 0x7a) && !BETWEEN_WORDS.includes(byte)) return false
  }
  return true
}

const TABLE = 4096

const BETWEEN_WORDS = Buffer.from(' -_./')

/** Shorter than a piece, or a few words: found only whole. However many there are, each place of a text is looked at once for each length. */
class ShortTexts {
  /** All three bytes of those that are shorter than a piece. */
  readonly quanta = new Set<number>()
  readonly #begin = new Uint8Array(TABLE)
  /** What is looked at first, of each `#stride`th place: each text has one of its beginnings marked there. */
  readonly #marks = new Uint8Array(TABLE)
  readonly #stride: number
  readonly #texts: ReadonlySet<string>
  /** Longest first: one text may begin as another. */
  readonly #lengths: readonly number[]

  constructor(texts: readonly Buffer[]) {
    this.#texts = new Set(texts.map((text) => text.toString('latin1')))
    this.#lengths = [...new Set(texts.map(({ length }) => length))].sort((one, other) => other - one)
    this.#stride = (this.#lengths.at(-1) ?? SAMPLE) - SAMPLE + 1
    for (const text of texts) {
      if (text.length < PIECE) for (let at = 0; at + QUANTUM <= text.length; at++) this.quanta.add(quantumAt(text, at))
      this.#begin[hashOfSample(text, 0) & (TABLE - 1)] = 1
      for (let at = 0; at < this.#stride; at++) this.#marks[hashOfSample(text, at) & (TABLE - 1)] = 1
    }
  }

  find(text: Uint8Array, onFound: OnFound): void {
    if (this.#texts.size === 0) return
    let end = 0
    for (let at = this.#stride - 1; at + SAMPLE <= text.length; at += this.#stride) {
      if (this.#marks[hashOfSample(text, at) & (TABLE - 1)] !== 1) continue
      for (let begin = Math.max(end, at - this.#stride + 1); begin <= at; begin++) {
        const length = this.#lengthAt(text, begin)
        if (length === 0) continue
        end = begin + length
        onFound(begin, end)
        break
      }
    }
  }

  /** Length of the longest of them that stands there; 0 for none. */
  #lengthAt(text: Uint8Array, at: number): number {
    if (this.#begin[hashOfSample(text, at) & (TABLE - 1)] !== 1) return 0
    const buffer = Buffer.from(text.buffer, text.byteOffset, text.length)
    return this.#lengths.find((one) => this.#texts.has(buffer.toString('latin1', at, at + one))) ?? 0
  }
}

const quantumAt = (bytes: Uint8Array, at: number): number =>
  ((bytes[at] ?? 0) << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0)

const word = (bytes: Uint8Array, at: number): number =>
  (bytes[at] ?? 0) | ((bytes[at + 1] ?? 0) << 8) | ((bytes[at + 2] ?? 0) << 16) | ((bytes[at + 3] ?? 0) << 24)

const mixed = (value: number): number => {
  const once = Math.imul(value ^ (value >>> 16), 0x45d9f3b)
  return (once ^ (once >>> 15)) >>> 0
}

const hashOfSample = (bytes: Uint8Array, at: number): number => mixed(word(bytes, at) ^ SEED)

const hashOfPiece = (bytes: Uint8Array, at: number): number =>
  mixed(Math.imul(mixed(Math.imul(mixed(word(bytes, at) ^ SEED), 31) ^ word(bytes, at + 4)), 31) ^ word(bytes, at + 8))
