import { randomInt } from 'node:crypto'
import { undoEscapes } from './undo-escapes.ts'

/** Characters of a secret's beginning or end, in one of its encodings, that suffice to detect it. */
const ANCHOR = 12
/**
 * Plain words shorter than this are not treated as part of a secret: paths and names contain them (`bearer-token`).
 */
const WORDS = 20
/** Characters compared at once; checking one position in every `shortest - GRAM + 1` finds each anchor. */
const GRAM = 4
const TABLE = 8192
const IN_ANCHOR = 1
const BEGINS_ANCHOR = 2
/** Random, so that clients can't choose secrets that collide in the table. */
const SEED = randomInt(2 ** 31)

/** Receives each match; `to` is exclusive. */
export type OnFound = (from: number, to: number) => void

type Alphabet = 'text' | 'base64' | 'hex'

/**
 * One encoding of a secret. The full encoding is built after one of its ends matched, because most text holds no
 * secret.
 */
class Spelling {
  readonly alphabet: Alphabet
  readonly #make: () => string
  #whole: string | undefined

  constructor(alphabet: Alphabet, make: () => string) {
    this.alphabet = alphabet
    this.#make = make
  }

  get whole(): string {
    return (this.#whole ??= this.#make())
  }

  /** Base64 and base64url, and both cases of hex, count as one encoding. */
  isSame(one: string, other: string): boolean {
    if (one === other) return true
    if (this.alphabet === 'hex') return one.toLowerCase() === other.toLowerCase()
    return this.alphabet === 'base64' && standard(one) === standard(other)
  }
}

interface Anchor {
  readonly spelling: Spelling
  readonly isEnd: boolean
}

/**
 * Search patterns of a set of secrets: each as it is, in base64 and base64url at three offsets, and in hex (RFC
 * 4648).
 */
export class Needles {
  readonly #anchors = new Map<string, Anchor[]>()
  readonly #lengths: readonly number[]
  readonly #table = new Uint8Array(TABLE)
  readonly #stride: number

  constructor(secrets: readonly string[]) {
    for (const secret of secrets) {
      this.#addText(secret)
      const unescaped = undoEscapes(secret)?.text
      if (unescaped !== undefined && unescaped.length > GRAM) this.#addText(unescaped)
      // Form encoding writes blanks as `+`.
      if (secret.includes(' ')) this.#addText(secret.replaceAll(' ', '+'))
      this.#addEncoded(Buffer.from(secret))
    }
    let shortest = ANCHOR
    for (const { length } of this.#anchors.keys()) shortest = Math.min(shortest, length)
    // Longest first: a longer anchor covers more of the secret.
    this.#lengths = Array.from({ length: ANCHOR - shortest + 1 }, (_, less) => ANCHOR - less)
    this.#stride = shortest - GRAM + 1
    for (const anchor of this.#anchors.keys()) {
      for (let at = 0; at < this.#stride; at++) this.#mark(anchor, at, IN_ANCHOR)
      this.#mark(anchor, 0, BEGINS_ANCHOR)
    }
  }

  /** Finds the secrets, and parts of their beginnings and ends, in one pass in linear time. */
  find(text: string, onFound: OnFound): void {
    /** No match begins before it. */
    let next = 0
    let end = 0
    let at = this.#stride - 1
    while (at + GRAM <= text.length) {
      let begin = Math.max(next, at - this.#stride + 1)
      let stretch: [number, number] | undefined
      if (((this.#table[gramAt(text, at)] ?? 0) & IN_ANCHOR) !== 0)
        for (; begin <= at && stretch === undefined; begin++)
          if (((this.#table[gramAt(text, begin)] ?? 0) & BEGINS_ANCHOR) !== 0)
            stretch = this.#stretchAt(text, begin, end)
      if (stretch === undefined) {
        at += this.#stride
        continue
      }
      onFound(...stretch)
      // The next secret may begin within this one's last anchor.
      end = stretch[1]
      next = Math.max(begin, end - ANCHOR + 1)
      at = Math.max(at, next + this.#stride - 1)
    }
  }

  /** The longest match with an anchor at this position, starting no earlier than `least`. */
  #stretchAt(text: string, begin: number, least: number): [number, number] | undefined {
    let longest: [number, number] | undefined
    for (const length of this.#lengths) {
      for (const { spelling, isEnd } of this.#anchors.get(text.slice(begin, begin + length)) ?? NONE) {
        const { whole } = spelling
        let [from, to] = [begin, begin + length]
        if (isEnd)
          for (let at = whole.length - length; at > 0 && from > least; at--, from--) {
            if (!spelling.isSame(text[from - 1] ?? '', whole[at - 1] ?? '')) break
          }
        else while (to - from < whole.length && spelling.isSame(text[to] ?? '', whole[to - from] ?? '')) to++
        if (to - from < whole.length && to - from < WORDS && isWords(text.slice(from, to))) continue
        if (longest === undefined || to - from > longest[1] - longest[0]) longest = [from, to]
      }
    }
    return longest
  }

  #addText(text: string): void {
    this.#add(new Spelling('text', () => text), [text.slice(0, ANCHOR), text.slice(-ANCHOR)])
  }

  #addEncoded(bytes: Buffer): void {
    // Digits come in pairs, an anchor is six bytes.
    const hex = (part: Buffer) => part.toString('hex')
    const digits = [hex(bytes.subarray(0, ANCHOR / 2)), hex(bytes.subarray(-ANCHOR / 2))] as const
    const inHex = new Spelling('hex', () => hex(bytes))
    this.#add(inHex, digits)
    this.#add(inHex, [digits[0].toUpperCase(), digits[1].toUpperCase()])
    const beginning = Buffer.alloc(2 + ANCHOR)
    bytes.copy(beginning, 2)
    for (const offset of [0, 1, 2]) {
      // Skips characters that depend on bytes before the secret.
      const first = Math.ceil((8 * offset) / 6)
      const last = Math.floor((8 * (offset + bytes.length)) / 6)
      const spelling = new Spelling('base64', () =>
        Buffer.concat([Buffer.alloc(offset), bytes])
          .toString('base64')
          .slice(first, last),
      )
      const begin = beginning.toString('base64', 2 - offset).slice(first, Math.min(last, first + ANCHOR))
      const end = base64End(bytes, offset, Math.max(first, last - ANCHOR), last)
      this.#add(spelling, [begin, end])
      const [safeBegin, safeEnd] = [urlSafe(begin), urlSafe(end)]
      if (safeBegin !== begin || safeEnd !== end) this.#add(spelling, [safeBegin, safeEnd])
    }
  }

  #add(spelling: Spelling, [first, last]: readonly [string, string]): void {
    for (const [text, isEnd] of [
      [first, false],
      [last, true],
    ] as const) {
      if (text.length <= GRAM) continue
      const anchors = this.#anchors.get(text) ?? []
      if (!anchors.some((one) => one.spelling === spelling && one.isEnd === isEnd)) anchors.push({ spelling, isEnd })
      this.#anchors.set(text, anchors)
    }
  }

  #mark(anchor: string, at: number, flag: number): void {
    const slot = gramAt(anchor, at)
    this.#table[slot] = (this.#table[slot] ?? 0) | flag
  }
}

const NONE: readonly Anchor[] = []

/** Characters `from` to `to` (exclusive), the last ones, of the base64 of some bytes that follow so many others. */
function base64End(bytes: Buffer, offset: number, from: number, to: number): string {
  // Four characters are three bytes.
  const group = from >> 2
  const begin = 3 * group - offset
  if (begin < 0)
    return Buffer.concat([Buffer.alloc(offset), bytes])
      .toString('base64')
      .slice(from, to)
  return bytes.toString('base64', begin).slice(from - 4 * group, to - 4 * group)
}

const standard = (one: string): string => (one === '-' ? '+' : one === '_' ? '/' : one)
const urlSafe = (text: string): string => (/[+/]/.test(text) ? text.replaceAll('+', '-').replaceAll('/', '_') : text)

/** Lower-case words and separators: no token has this form by chance. */
const isWords = (text: string): boolean => /^[a-z _./-]*$/.test(text)

function gramAt(text: string, at: number): number {
  const value =
    text.charCodeAt(at) ^
    (text.charCodeAt(at + 1) << 8) ^
    (text.charCodeAt(at + 2) << 16) ^
    (text.charCodeAt(at + 3) << 24)
  const once = Math.imul(value ^ SEED ^ (value >>> 16), 0x45d9f3b)
  return (once ^ (once >>> 15)) & (TABLE - 1)
}
