import { Buffer } from 'node:buffer'

/** A token of an expression. Offsets are UTF-16 units. */
export type Token = { readonly start: number; readonly end: number } & (
  | { readonly kind: 'name' | 'quoted' | 'operator'; readonly text: string }
  | { readonly kind: 'int' | 'uint'; readonly text: string }
  | { readonly kind: 'double'; readonly value: number }
  | { readonly kind: 'string'; readonly value: string }
  | { readonly kind: 'bytes'; readonly value: Uint8Array }
  | { readonly kind: 'end' }
  /** Not a token of the language; an error only if the parser reaches it. */
  | { readonly kind: 'bad'; readonly problem: string }
)

const SPACE = /[\t\n\f\r ]*/y
const NAME = /[_a-zA-Z][_a-zA-Z0-9]*/y
const NUMBER = /0x[0-9a-fA-F]+[uU]?|(?:\d+\.\d+|\.\d+|\d+)(?:[eE][+-]?\d+)?[uU]?/y
const PREFIX = /(?:[rR][bB]?|[bB][rR]?)?(?:"""|'''|"|')/y
const QUOTED = /`[a-zA-Z0-9_.\-/ ]+`/y
const OPERATOR = /==|!=|<=|>=|&&|\|\||[-+*/%!<>?:.,()[\]{}]/y
const END_OF_LINE = /[\r\n]/g

const ESCAPES: ReadonlyMap<string, string> = new Map([
  ...Object.entries({ a: '\x07', b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v' }),
  ...['\\', '?', '"', "'", '`'].map((same) => [same, same] as const),
])
/** Digits of an escape, by what introduces it. */
const DIGITS: ReadonlyMap<string, number> = new Map(Object.entries({ x: 2, X: 2, u: 4, U: 8 }))

/**
 * The words of an expression of CEL (language definition, "Syntax"), then `end`. Each character is looked at a bounded
 * number of times, whatever the text is: no pattern here can go back over more than one word.
 */
export function tokensOf(text: string): readonly Token[] {
  const tokens: Token[] = []
  let at = skipBlanks(text, 0)
  while (at < text.length) {
    const token = tokenAt(text, at)
    tokens.push(token)
    if (token.kind === 'bad') return tokens
    at = skipBlanks(text, token.end)
  }
  tokens.push({ kind: 'end', start: text.length, end: text.length })
  return tokens
}

function match(pattern: RegExp, text: string, at: number): string | undefined {
  pattern.lastIndex = at
  return pattern.exec(text)?.[0]
}

function skipBlanks(text: string, from: number): number {
  let at = from
  for (;;) {
    at += match(SPACE, text, at)?.length ?? 0
    if (!text.startsWith('//', at)) return at
    END_OF_LINE.lastIndex = at
    at = END_OF_LINE.exec(text)?.index ?? text.length
  }
}

function tokenAt(text: string, start: number): Token {
  const prefix = match(PREFIX, text, start)
  if (prefix !== undefined) return stringAt(text, start, prefix)
  const name = match(NAME, text, start)
  if (name !== undefined) return { kind: 'name', text: name, start, end: start + name.length }
  const number = match(NUMBER, text, start)
  if (number !== undefined) return numberOf(number, start)
  const quoted = match(QUOTED, text, start)
  if (quoted !== undefined) return { kind: 'quoted', text: quoted.slice(1, -1), start, end: start + quoted.length }
  const operator = match(OPERATOR, text, start)
  if (operator !== undefined) return { kind: 'operator', text: operator, start, end: start + operator.length }
  return bad(start, `found ${String.fromCodePoint(text.codePointAt(start) ?? 0xfffd).toWellFormed()}`)
}

const bad = (start: number, problem: string): Token => ({ kind: 'bad', problem, start, end: start })

function numberOf(number: string, start: number): Token {
  const end = start + number.length
  const isHex = number.startsWith('0x')
  if (!isHex && /[.eE]/.test(number)) {
    return /[uU]$/.test(number)
      ? bad(end - 1, 'an unsigned number has no fraction')
      : { kind: 'double', value: Number(number), start, end }
  }
  return /[uU]$/.test(number)
    ? { kind: 'uint', text: number.slice(0, -1), start, end }
    : { kind: 'int', text: number, start, end }
}

/** A string or bytes, raw or not, in one or three quotes of either kind. */
function stringAt(text: string, start: number, prefix: string): Token {
  const quote = prefix.replace(/^[a-zA-Z]+/, '')
  const letters = prefix.slice(0, -quote.length).toLowerCase()
  const [isRaw, isBytes] = [letters.includes('r'), letters.includes('b')]
  const parts: (string | number)[] = []
  let at = start + prefix.length
  let copied = at
  while (!text.startsWith(quote, at)) {
    const character = text[at]
    if (character === undefined || (quote.length === 1 && (character === '\n' || character === '\r')))
      return bad(start, `found a text that is not closed with ${quote}`)
    if (character !== '\\' || isRaw) {
      at += 1
      continue
    }
    const escape = escapeAt(text, at + 1, isBytes)
    if (escape === undefined) return bad(at, 'found a backslash before what it cannot escape')
    parts.push(text.slice(copied, at), escape.value)
    at += 1 + escape.length
    copied = at
  }
  parts.push(text.slice(copied, at))
  const end = at + quote.length
  if (!isBytes) return { kind: 'string', value: parts.join(''), start, end }
  const bytes = parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : Buffer.of(part)))
  return { kind: 'bytes', value: new Uint8Array(Buffer.concat(bytes)), start, end }
}

/** Decodes an escape: a byte as a number, and the characters used after the backslash. */
function escapeAt(text: string, at: number, isBytes: boolean): { value: string | number; length: number } | undefined {
  const letter = text[at] ?? ''
  const plain = ESCAPES.get(letter)
  if (plain !== undefined) return { value: plain, length: 1 }
  const digits = DIGITS.get(letter)
  const isOctal = digits === undefined
  const written = isOctal ? text.slice(at, at + 3) : text.slice(at + 1, at + 1 + digits)
  if (!(isOctal ? /^[0-3][0-7]{2}$/.test(written) : written.length === digits && /^[0-9a-fA-F]+$/.test(written)))
    return undefined
  const code = Number.parseInt(written, isOctal ? 8 : 16)
  const length = isOctal ? 3 : 1 + digits
  if (isBytes) return isOctal || digits === 2 ? { value: code, length } : undefined
  // Surrogates are no characters, paired or not.
  if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return undefined
  return { value: String.fromCodePoint(code), length }
}
