import { isUtf8 } from 'node:buffer'
import { type Claims, type ClaimValue, noPrototype } from '../core/index.ts'

/** More levels than any claim has; parsing recurses once per level. */
const MAX_DEPTH = 32

/** Additional checks. */
export interface StrictJsonOptions {
  /** Levels of nesting. Default 32. */
  readonly maxDepth?: number
  /** A field in which, and in the document itself, names that differ only by case count as equal. */
  readonly caseInsensitiveIn?: string
  /** Rejects what some readers replace or drop: lone surrogates, and the name `__proto__`. Default false. */
  readonly wellFormed?: boolean
}

/** A name as case-insensitive readers compare it: simple folding, including `ſ` and the Kelvin sign. */
export const foldName = (name: string): string => name.toUpperCase().toLowerCase()

/** Known field names by their folded form. */
export type FoldedNames = ReadonlyMap<string, string>

export const foldedNames = (names: readonly string[]): FoldedNames =>
  new Map(names.map((name) => [foldName(name), name]))

/** Whether `name` is a known name in another case, which case-insensitive readers would accept. */
export function isInOtherCase(known: FoldedNames, name: string): boolean {
  // A known name as it is written: nearly all.
  if (known.get(name) === name) return false
  const meant = known.get(foldName(name))
  return meant !== undefined && meant !== name
}

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y

const LOWER_CASE = /^[a-z\d_]*$/
/** More than JSON forbids in strings: then `JSON.parse` decides. */
const CONTROL = /\p{Cc}/gu

const Members = noPrototype<ClaimValue>()

const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const OPEN_ARRAY = 0x5b
const BACKSLASH = 0x5c
const CLOSE_ARRAY = 0x5d
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d

const WORDS: readonly (readonly [string, ClaimValue])[] = [
  ['true', true],
  ['false', false],
  ['null', null],
]

/** Invalid JSON, or ambiguous JSON. */
export class JsonError extends Error {
  override readonly name = 'JsonError'
}

/**
 * Parses a JSON object as claims: deeply frozen, no prototypes. Rejects input that `JSON.parse` accepts: duplicate
 * names (RFC 7519 §4, RFC 8259 §4: readers disagree on which counts), nesting deeper than 32 levels and numbers that
 * are not finite. Throws `JsonError`.
 */
export function parseJsonObject(text: string, options: StrictJsonOptions = {}): Claims {
  const value = new Reader(text, options).document()
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new JsonError('not an object')
  return value as Claims
}

/** The same for untrusted bytes; undefined for everything except UTF-8 text of such an object. */
export function readJsonObject(bytes: Buffer, options: StrictJsonOptions = {}): Claims | undefined {
  if (!isUtf8(bytes)) return undefined
  try {
    return parseJsonObject(bytes.toString('utf8'), options)
  } catch {
    return undefined
  }
}

class Reader {
  readonly #text: string
  readonly #maxDepth: number
  readonly #caseInsensitiveIn: string | undefined
  readonly #wellFormed: boolean
  #at = 0
  /** The first backslash and the first control character from the last string on. */
  #backslashAt = -1
  #controlAt = -1
  /** The top-level field being read. */
  #field: string | undefined = undefined

  constructor(text: string, { maxDepth = MAX_DEPTH, caseInsensitiveIn, wellFormed = false }: StrictJsonOptions) {
    this.#text = text
    this.#maxDepth = maxDepth
    this.#caseInsensitiveIn = caseInsensitiveIn
    this.#wellFormed = wellFormed
  }

  document(): ClaimValue {
    const value = this.#value(0)
    this.#skipSpace()
    if (this.#at !== this.#text.length) throw new JsonError('unexpected text after the value')
    return value
  }

  /** The code of the next character that is not whitespace. */
  #skipSpace(): number {
    for (;;) {
      const code = this.#text.charCodeAt(this.#at)
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return code
      this.#at += 1
    }
  }

  /** Consumes the character with this code if it is next, ignoring whitespace. */
  #takes(code: number): boolean {
    if (this.#skipSpace() !== code) return false
    this.#at += 1
    return true
  }

  #value(depth: number): ClaimValue {
    if (depth > this.#maxDepth) throw new JsonError('nested too deep')
    switch (this.#skipSpace()) {
      case QUOTE:
        return this.#string()
      case OPEN_OBJECT:
        this.#at += 1
        return this.#object(depth)
      case OPEN_ARRAY:
        this.#at += 1
        return this.#array(depth)
      default:
        return this.#scalar()
    }
  }

  #scalar(): ClaimValue {
    for (const [word, value] of WORDS) {
      if (this.#text.startsWith(word, this.#at)) {
        this.#at += word.length
        return value
      }
    }
    NUMBER.lastIndex = this.#at
    const digits = NUMBER.exec(this.#text)?.[0]
    if (digits === undefined) throw new JsonError('not a value')
    this.#at += digits.length
    const number = Number(digits)
    if (!Number.isFinite(number)) throw new JsonError('a number that is not finite')
    return number
  }

  #string(): string {
    const text = this.#text
    const start = this.#at
    if (text.charCodeAt(start) !== QUOTE) throw new JsonError('not a string')
    if (this.#backslashAt < start) this.#backslashAt = indexOrEnd(text.indexOf('\\', start), text)
    if (this.#controlAt < start) this.#controlAt = controlFrom(text, start)
    let end = text.indexOf('"', start + 1)
    while (end > this.#backslashAt && isEscaped(text, end)) end = text.indexOf('"', end + 1)
    if (end === -1) throw new JsonError('unterminated string')
    this.#at = end + 1
    const isPlain = end < this.#backslashAt && end < this.#controlAt
    const value = isPlain ? text.slice(start + 1, end) : unquote(text.slice(start, end + 1))
    if (this.#wellFormed && !value.isWellFormed()) throw new JsonError('a lone surrogate')
    return value
  }

  #object(depth: number): ClaimValue {
    const members = new Members()
    if (this.#takes(CLOSE_OBJECT)) return Object.freeze(members)
    const ignoresCase =
      this.#caseInsensitiveIn !== undefined && (depth === 0 || this.#field === this.#caseInsensitiveIn)
    let folded: Set<string> | undefined
    do {
      this.#skipSpace()
      const name = this.#string()
      if (this.#wellFormed && name === '__proto__') throw new JsonError('the name of a prototype')
      // A member is never undefined, and nothing is inherited.
      if (members[name] !== undefined) throw new JsonError('duplicate name')
      // Lower-case names differ by more than case.
      if (ignoresCase && (folded !== undefined || !LOWER_CASE.test(name))) {
        folded ??= new Set(Object.keys(members).map(foldName))
        if (folded.size === folded.add(foldName(name)).size) throw new JsonError('duplicate name in different case')
      }
      if (depth === 0) this.#field = name
      if (!this.#takes(COLON)) throw new JsonError('a name without a value')
      members[name] = this.#value(depth + 1)
    } while (this.#takes(COMMA))
    if (!this.#takes(CLOSE_OBJECT)) throw new JsonError('unterminated object')
    return Object.freeze(members)
  }

  #array(depth: number): ClaimValue {
    const elements: ClaimValue[] = []
    if (this.#takes(CLOSE_ARRAY)) return Object.freeze(elements)
    do elements.push(this.#value(depth + 1))
    while (this.#takes(COMMA))
    if (!this.#takes(CLOSE_ARRAY)) throw new JsonError('unterminated array')
    return Object.freeze(elements)
  }
}

const indexOrEnd = (index: number, text: string): number => (index === -1 ? text.length : index)

function controlFrom(text: string, start: number): number {
  CONTROL.lastIndex = start
  return indexOrEnd(CONTROL.exec(text)?.index ?? -1, text)
}

/** Whether an odd number of backslashes precedes this place. */
function isEscaped(text: string, at: number): boolean {
  let first = at
  while (text.charCodeAt(first - 1) === BACKSLASH) first -= 1
  return (at - first) % 2 === 1
}

function unquote(raw: string): string {
  try {
    return JSON.parse(raw) as string
  } catch {
    throw new JsonError('a string with bad escapes')
  }
}
