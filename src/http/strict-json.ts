import type { ClaimValue, Claims } from '../core/index.ts'

/** Deeper nesting than any claim has; parsing recurses once per level. */
const MAX_DEPTH = 32

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
export function parseJsonObject(text: string): Claims {
  const value = new Reader(text).document()
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new JsonError('not an object')
  return value as Claims
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** The same for bytes from outside; undefined for everything but UTF-8 text of such an object. */
export function readJsonObject(bytes: Uint8Array): Claims | undefined {
  try {
    return parseJsonObject(utf8.decode(bytes))
  } catch {
    return undefined
  }
}

class Reader {
  readonly #text: string
  #at = 0

  constructor(text: string) {
    this.#text = text
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
    if (depth > MAX_DEPTH) throw new JsonError('nested too deep')
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
        return unquote(this.#text.slice(start, at + 1))
      }
    }
    throw new JsonError('a string without an end')
  }

  #object(depth: number): ClaimValue {
    // Without a prototype `__proto__` and `constructor` are names like any other.
    const members = Object.create(null) as Record<string, ClaimValue>
    if (this.#takes('}')) return Object.freeze(members)
    do {
      this.#match(SPACE)
      const name = this.#string()
      if (Object.hasOwn(members, name)) throw new JsonError('a name appears twice')
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
