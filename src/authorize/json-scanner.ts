import { unclear } from './unclear.ts'

/** Characters of a field name that is wanted. */
const MAX_NAME = 1024
const MAX_SCALAR = 1024
const MAX_DEPTH = 256

/** Gets the parts of a JSON text in order. */
export interface JsonHandler {
  /** Whether the names of the fields of the innermost object are wanted. */
  readsNames(): boolean
  /** Characters as they are, in pieces; `isSpace`: between tokens. */
  text(text: string, isSpace: boolean): void
  comma(): void
  /** A value begins, before its first character. */
  valueBegins(kind: 'object' | 'array' | 'string' | 'scalar'): void
  /** After the first character of an object or array. */
  opened(kind: 'object' | 'array'): void
  /** Before its last character. */
  closing(): void
  /** After its last character. */
  closed(): void
  /** A field name that is wanted, as it is written. */
  name(text: string): void
  valueEnds(): void
}

type Expected = 'value' | 'value or end' | 'name or end' | 'name' | 'colon' | 'comma or end' | 'nothing'

/** Reads one JSON text in pieces, strictly (RFC 8259). Throws `backend_error`. */
export class JsonScanner {
  readonly #handler: JsonHandler
  readonly #stack: ('object' | 'array')[] = []
  #expected: Expected = 'value'
  #state: 'between' | 'string' | 'escape' | 'scalar' = 'between'
  #isName = false
  /** A field name or a scalar as far as it has come. */
  #token = ''
  /** Something has come that is no space. */
  hasBegun = false

  constructor(handler: JsonHandler) {
    this.#handler = handler
  }

  get isInString(): boolean {
    return this.#state === 'string' || this.#state === 'escape'
  }

  push(text: string): void {
    let from = 0
    for (let at = 0; at < text.length; at++) {
      const code = text.charCodeAt(at)
      if (this.#state === 'string') {
        if (code === BACKSLASH) this.#state = 'escape'
        else if (code < 0x20) throw unclear('a control character in a string')
        else if (code === QUOTE) {
          this.#state = 'between'
          const isWanted = this.#isName && this.#handler.readsNames()
          if (isWanted) this.#token += text.slice(from, at + 1)
          this.#emit(text.slice(from, at + 1))
          from = at + 1
          if (this.#isName) this.#nameEnds(isWanted)
          else this.#valueEnds()
        }
        continue
      }
      if (this.#state === 'escape') {
        this.#state = 'string'
        continue
      }
      if (this.#state === 'scalar') {
        if (isScalar(code)) {
          this.#token += text[at]
          if (this.#token.length > MAX_SCALAR) throw unclear('a number that is too long')
          continue
        }
        this.#emit(text.slice(from, at))
        from = at
        this.#scalarEnds()
      }
      if (code === 0x20 || code === 0x09 || code === 0x0a || code === 0x0d) {
        this.#emit(text.slice(from, at + 1), true)
        from = at + 1
        continue
      }
      this.hasBegun = true
      this.#emit(text.slice(from, at), true)
      from = at
      this.#structure(code)
      if (this.#state === 'between') {
        from = at + 1
      } else if (this.#state === 'scalar') this.#token = text[at] ?? ''
    }
    if (this.#isName && this.#handler.readsNames()) {
      this.#token += text.slice(from)
      if (this.#token.length > MAX_NAME) throw unclear('a field name that is too long')
    }
    this.#emit(text.slice(from))
  }

  /** Throws `backend_error` for a text that is not whole. */
  end(): void {
    if (this.#state === 'scalar') this.#scalarEnds()
    if (this.#stack.length > 0 || this.#expected !== 'nothing') throw unclear('it breaks off')
  }

  #emit(text: string, isSpace = false): void {
    if (text !== '') this.#handler.text(text, isSpace)
  }

  #structure(code: number): void {
    const top = this.#stack.at(-1)
    switch (code) {
      case OPEN_OBJECT:
      case OPEN_ARRAY:
        this.#expectValue()
        return this.#open(code === OPEN_OBJECT ? 'object' : 'array')
      case CLOSE_OBJECT:
        if (top !== 'object' || (this.#expected !== 'name or end' && this.#expected !== 'comma or end'))
          throw unclear('not JSON')
        return this.#close('}')
      case CLOSE_ARRAY:
        if (top !== 'array' || (this.#expected !== 'value or end' && this.#expected !== 'comma or end'))
          throw unclear('not JSON')
        return this.#close(']')
      case COMMA:
        if (this.#expected !== 'comma or end') throw unclear('not JSON')
        this.#expected = top === 'object' ? 'name' : 'value'
        return this.#handler.comma()
      case COLON:
        if (this.#expected !== 'colon') throw unclear('not JSON')
        this.#expected = 'value'
        return this.#emit(':')
      case QUOTE:
        if (this.#expected === 'name' || this.#expected === 'name or end') {
          this.#isName = true
          this.#token = ''
        } else {
          this.#expectValue()
          this.#isName = false
          this.#handler.valueBegins('string')
        }
        this.#state = 'string'
        return
      default:
        if (!isScalar(code)) throw unclear('not JSON')
        this.#expectValue()
        this.#isName = false
        this.#handler.valueBegins('scalar')
        this.#state = 'scalar'
    }
  }

  #expectValue(): void {
    if (this.#expected !== 'value' && this.#expected !== 'value or end') throw unclear('not JSON')
  }

  #open(kind: 'object' | 'array'): void {
    this.#handler.valueBegins(kind)
    this.#emit(kind === 'object' ? '{' : '[')
    if (this.#stack.length >= MAX_DEPTH) throw unclear('nested too deep')
    this.#stack.push(kind)
    this.#handler.opened(kind)
    this.#expected = kind === 'object' ? 'name or end' : 'value or end'
  }

  #close(last: '}' | ']'): void {
    this.#handler.closing()
    this.#emit(last)
    this.#stack.pop()
    this.#handler.closed()
    this.#valueEnds()
  }

  #nameEnds(isWanted: boolean): void {
    this.#expected = 'colon'
    this.#isName = false
    if (isWanted) this.#handler.name(this.#token)
  }

  #scalarEnds(): void {
    this.#state = 'between'
    if (!SCALAR.test(this.#token)) throw unclear('not JSON')
    this.#valueEnds()
  }

  #valueEnds(): void {
    this.#handler.valueEnds()
    this.#expected = this.#stack.length === 0 ? 'nothing' : 'comma or end'
  }
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const COLON = 0x3a
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d
const OPEN_ARRAY = 0x5b
const CLOSE_ARRAY = 0x5d
const SCALAR = /^(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)$/

/** Digits, letters, `+`, `-` and `.`. */
const isScalar = (code: number): boolean =>
  (code >= 0x30 && code <= 0x39) ||
  (code >= 0x61 && code <= 0x7a) ||
  (code >= 0x41 && code <= 0x5a) ||
  code === 0x2d ||
  code === 0x2e ||
  code === 0x2b
