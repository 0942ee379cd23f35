import type { ClaimValue, Claims } from '../core/index.ts'

/** Deeper nesting than any claim has; parsing recurses once per level. */
const MAX_DEPTH = 32

/** How strict a reader is beyond what every document is held to. */
export interface StrictJsonOptions {
  /** Levels of nesting. Default 32. */
  readonly maxDepth?: number
  /** A field of the document below which, and in the document itself, names are equal that differ by case only. */
  readonly caseInsensitiveIn?: string
  /** Refuses lone surrogates, which readers replace by different characters. Default false. */
  readonly wellFormed?: boolean
}

/** A name as readers that ignore case compare it: simple folding, `ſ` and the Kelvin sign included. */
export const foldName = (name: string): string => name.toUpperCase().toLowerCase()

/** Known names of fields by their folded form. */
export type FoldedNames = ReadonlyMap<string, string>

export const foldedNames = (names: readonly string[]): FoldedNames =>
  new Map(names.map((name) => [foldName(name), name]))

/** Whether `name` is a known name in another case: readers that ignore case take it for that one. */
export function isInOtherCase(known: FoldedNames, name: string): boolean {
  const meant = known.get(foldName(name))
  return meant !== undefined && meant !== name
}

const SPACE = /[\t\n\r ]*/y
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y

const QUOTE = 0x22
const BACKSLASH = 0x5c

const WORDS: readonly (readonly [string, ClaimValue])[] = [
  ['true', true],
  ['false', false],
  ['null', null],
]

/** Text that is not JSON, or JSON that two readers could understand differently. */
export class JsonError extends Error {
  override readonly name = 'JsonError'
}

/**
 * A JSON object as claims: deeply frozen, no prototypes. Refuses what `JSON.parse` lets through: a member name that
 * appears twice (RFC 7519 §4, RFC 8259 §4: readers disagree on which counts), nesting deeper than 32 levels and numbers
 * that are not finite. Throws `JsonError`.
 */
export function parseJsonObject(text: string, options: StrictJsonOptions = {}): Claims {
  const value = new Reader(text, options).document()
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new JsonError('not an object')
  return value as Claims
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** The same for bytes from outside; undefined for everything but UTF-8 text of such an object. */
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
  /** The field of the document that is being read. */
  #field: string | undefined = undefined

  constructor(text: string, { maxDepth = MAX_DEPTH, caseInsensitiveIn, wellFormed = false }: StrictJsonOptions) {
    this.#text = text
    this.#maxDepth = maxDepth
    this.#caseInsensitiveIn = caseInsensitiveIn
    this.#wellFormed = wellFormed
  }

  document(): ClaimValue {
    const value = this.#value(0)
    this.#match(SPACE)
    if (this.#at !== this.#text.length) throw new JsonError('something follows the value')
    return value
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at
    const found = pattern.exec(this.#text)?.[0]
    if (found !== undefined) this.#at += found.length
    return found
  }

  /** Takes `character` if it is next, spaces aside. */
  #takes(character: string): boolean {
    this.#match(SPACE)
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
    if (!Number.isFinite(number)) throw new JsonError('a number without an end')
    return number
  }

  #string(): string {
    const start = this.#at
    if (this.#text[start] !== '"') throw new JsonError('not a string')
    // Scanned by hand: a pattern with an alternative per character needs stack in proportion to the text.
    for (let at = start + 1; at < this.#text.length; at++) {
      const code = this.#text.charCodeAt(at)
      if (code === BACKSLASH) at += 1
      else if (code === QUOTE) {
        this.#at = at + 1
        const value = unquote(this.#text.slice(start, at + 1))
        if (this.#wellFormed && !value.isWellFormed()) throw new JsonError('a lone surrogate')
        return value
      }
    }
    throw new JsonError('a string without an end')
  }

  #object(depth: number): ClaimValue {
    // Without a prototype `__proto__` and `constructor` are names like any other.
    const members = Object.create(null) as Record<string, ClaimValue>
    if (this.#takes('}')) return Object.freeze(members)
    const ignoresCase =
      this.#caseInsensitiveIn !== undefined && (depth === 0 || this.#field === this.#caseInsensitiveIn)
    const folded = ignoresCase ? new Set<string>() : undefined
    do {
      this.#match(SPACE)
      const name = this.#string()
      if (Object.hasOwn(members, name)) throw new JsonError('a name appears twice')
      if (folded !== undefined && folded.size === folded.add(foldName(name)).size)
        throw new JsonError('a name appears twice, in different case')
      if (depth === 0) this.#field = name
      if (!this.#takes(':')) throw new JsonError('a name without a value')
      members[name] = this.#value(depth + 1)
    } while (this.#takes(','))
    if (!this.#takes('}')) throw new JsonError('an object without an end')
    return Object.freeze(members)
  }

  #array(depth: number): ClaimValue {
    const elements: ClaimValue[] = []
    if (this.#takes(']')) return Object.freeze(elements)
    do elements.push(this.#value(depth + 1))
    while (this.#takes(','))
    if (!this.#takes(']')) throw new JsonError('an array without an end')
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
