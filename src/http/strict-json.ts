import type { ClaimValue, Claims } from '../core/index.ts'

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
  const meant = known.get(foldName(name))
  return meant !== undefined && meant !== name
}

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y

const QUOTE = 0x22
const BACKSLASH = 0x5c

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

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** The same for untrusted bytes; undefined for everything except UTF-8 text of such an object. */
export function readJsonObject(bytes: Uint8Array, options: StrictJsonOptions = {}): Claims | undefined {
  try {
    return parseJsonObject(utf8.decode(bytes), options)
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

  #skipSpace(): void {
    for (;;) {
      const code = this.#text.charCodeAt(this.#at)
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return
      this.#at += 1
    }
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at
    const found = pattern.exec(this.#text)?.[0]
    if (found !== undefined) this.#at += found.length
    return found
  }

  /** Consumes `character` if it is next, ignoring whitespace. */
  #takes(character: string): boolean {
    this.#skipSpace()
    if (this.#text[this.#at] !== character) return false
    this.#at += 1
    return true
  }

  #value(depth: number): ClaimValue {
    if (depth > this.#maxDepth) throw new JsonError('nested too deep')
    if (this.#takes('{')) return this.#object(depth)
    if (this.#takes('[')) return this.#array(depth)
    if (this.#text[this.#at] === '"') return this.#string()
    for (const [word, value] of WORDS) {
      if (this.#text.startsWith(word, this.#at)) {
        this.#at += word.length
        return value
      }
    }
    const digits = this.#match(NUMBER)
    if (digits === undefined) throw new JsonError('not a value')
    const number = Number(digits)
    if (!Number.isFinite(number)) throw new JsonError('a number that is not finite')
    return number
  }

  #string(): string {
    const start = this.#at
    if (this.#text[start] !== '"') throw new JsonError('not a string')
    // A loop, because a pattern with an alternative per character needs stack in proportion to the text.
    let isPlain = true
    for (let at = start + 1; at < this.#text.length; at++) {
      const code = this.#text.charCodeAt(at)
      if (code < 0x20) isPlain = false
      if (code === BACKSLASH) {
        isPlain = false
        at += 1
      } else if (code === QUOTE) {
        this.#at = at + 1
        const value = isPlain ? this.#text.slice(start + 1, at) : unquote(this.#text.slice(start, at + 1))
        if (this.#wellFormed && !value.isWellFormed()) throw new JsonError('a lone surrogate')
        return value
      }
    }
    throw new JsonError('unterminated string')
  }

  #object(depth: number): ClaimValue {
    // Without a prototype, `__proto__` and `constructor` are ordinary names.
    const members = Object.create(null) as Record<string, ClaimValue>
    if (this.#takes('}')) return Object.freeze(members)
    const ignoresCase =
      this.#caseInsensitiveIn !== undefined && (depth === 0 || this.#field === this.#caseInsensitiveIn)
    const folded = ignoresCase ? new Set<string>() : undefined
    do {
      this.#skipSpace()
      const name = this.#string()
      if (this.#wellFormed && name === '__proto__') throw new JsonError('the name of a prototype')
      if (Object.hasOwn(members, name)) throw new JsonError('duplicate name')
      if (folded !== undefined && folded.size === folded.add(foldName(name)).size)
        throw new JsonError('duplicate name in different case')
      if (depth === 0) this.#field = name
      if (!this.#takes(':')) throw new JsonError('a name without a value')
      members[name] = this.#value(depth + 1)
    } while (this.#takes(','))
    if (!this.#takes('}')) throw new JsonError('unterminated object')
    return Object.freeze(members)
  }

  #array(depth: number): ClaimValue {
    const elements: ClaimValue[] = []
    if (this.#takes(']')) return Object.freeze(elements)
    do elements.push(this.#value(depth + 1))
    while (this.#takes(','))
    if (!this.#takes(']')) throw new JsonError('unterminated array')
    return Object.freeze(elements)
  }
}

function unquote(raw: string): string {
  try {
    return JSON.parse(raw) as string
  } catch {
    throw new JsonError('a string with bad escapes')
  }
}
