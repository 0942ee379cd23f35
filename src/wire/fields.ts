import { malformed } from './wire-error.ts'

/** Header lines by lower-case name; repeated ones as an array, in their order. It has no prototype of `Object`. */
export type Fields = Record<string, string | string[] | undefined>

/** Lines of the head of an answer, and of a trailer section. */
const MAX_LINES = 256

/** RFC 9110 §5.6.2. */
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/

/** RFC 9110 §5.5, Latin-1 as Node reads and writes it: no control characters but tabs. */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

/** A section of lines that end with CRLF, without the last one: CR and LF stand nowhere else, and no control characters. */
const SECTION = /^[\t\x20-\x7e\x80-\xff]*(?:\r\n[\t\x20-\x7e\x80-\xff]*)*$/

const SPACE = 0x20
const TAB = 0x09

/** Names that are remembered; beyond it the memory starts anew, so that random names cost time, not space. */
const MAX_REMEMBERED = 1024
const MAX_REMEMBERED_LENGTH = 64
const remembered = new Map<string, Name>()

/** A name as it stood and in lower case, neither of them a part of a head. */
interface Name {
  readonly raw: string
  readonly name: string
}

// Objects of a constructor are faster than those without a prototype, and `__proto__` is a name like others in both.
const NoPrototype = function () {} as unknown as new () => Fields
NoPrototype.prototype = Object.create(null) as object

export const isToken = (text: string): boolean => TOKEN.test(text)
export const isFieldValue = (text: string): boolean => VALUE.test(text)

/** A name in lower case; undefined for what is no token (RFC 9110 §5.1). */
export function fieldNameOf(raw: string): string | undefined {
  return nameOf(raw)?.name
}

function nameOf(raw: string): Name | undefined {
  const known = remembered.get(raw)
  if (known !== undefined) return known
  if (!TOKEN.test(raw)) return undefined
  const own = copied(raw)
  const name = { raw: own, name: own.toLowerCase() }
  if (raw.length <= MAX_REMEMBERED_LENGTH) {
    if (remembered.size >= MAX_REMEMBERED) remembered.clear()
    remembered.set(own, name)
  }
  return name
}

/** V8 copies what is shorter; a longer part of a text holds all of that text, and with it the secrets of a head. */
const LEAST_PART = 13

/** The same text, as a part of no other. */
const copied = (text: string): string =>
  text.length < LEAST_PART ? text : Buffer.from(text, 'latin1').toString('latin1')

/** Throws `WireError` for a section with a character that stands in none, or with a CR or LF by itself. */
export function checkSection(text: string): void {
  if (!SECTION.test(text)) throw malformed('a control character in the head')
}

/** The bytes of a section, from which each of its lines is read once more as a text of its own. */
export interface OwnLines {
  readonly bytes: Buffer
  /** Where the section begins in them. */
  readonly from: number
  /** Gets the lines as they stand, flat (name, value, …). */
  readonly lines: string[]
}

/**
 * The field lines of a checked section from `at` on (RFC 9112 §5): `name:` without blanks before the colon, no folding.
 * Throws `WireError` for any other line, and for more than 256.
 * @param own the lines of a request: their number is bounded by the size of its head, and repeated names become one value
 * (see `addRequestField`)
 */
export function readFields(text: string, at: number, own?: OwnLines): Fields {
  const fields = new NoPrototype()
  let lines = 0
  while (at < text.length) {
    if (own === undefined && ++lines > MAX_LINES) throw malformed('too many header lines')
    let end = text.indexOf('\r\n', at)
    if (end === -1) end = text.length
    const colon = text.indexOf(':', at)
    const raw = colon === -1 || colon > end ? '' : text.slice(at, colon)
    const name = nameOf(raw)
    if (name === undefined) throw malformed('a header line without a name')
    const start = afterBlanks(text, colon + 1, end)
    const stop = beforeBlanks(text, start, end, own === undefined || FRAMING.has(name.name))
    if (own === undefined) add(fields, name.name, text.slice(start, stop))
    else {
      const value = own.bytes.toString('latin1', own.from + start, own.from + stop)
      own.lines.push(name.raw, value)
      addRequestField(fields, name.name, value)
    }
    at = end + 2
  }
  return fields
}

/** What decides where a request ends, what follows it, and for whom it is. */
const FRAMING: ReadonlySet<string> = new Set([
  'content-length',
  'transfer-encoding',
  'connection',
  'upgrade',
  'expect',
  'host',
])

/** Fields with one value. The first line counts, as Node has it; who must not be misled looks at the lines. */
const SINGULAR: ReadonlySet<string> = new Set([
  'age',
  'authorization',
  'content-type',
  'etag',
  'expires',
  'from',
  'host',
  'if-modified-since',
  'if-unmodified-since',
  'last-modified',
  'location',
  'max-forwards',
  'proxy-authorization',
  'referer',
  'retry-after',
  'server',
  'user-agent',
])

/**
 * Adds a line of a request: lists are joined (RFC 9110 §5.3), `cookie` with a semicolon (RFC 6265 §5.4), `set-cookie` is
 * an array. Throws `WireError` for a second length or coding.
 */
function addRequestField(fields: Fields, name: string, value: string): void {
  const known = fields[name]
  if (known === undefined) fields[name] = name === 'set-cookie' ? [value] : value
  else if (typeof known !== 'string') known.push(value)
  else if (name === 'content-length' || name === 'transfer-encoding') throw malformed(`${name} twice`)
  else if (name === 'cookie') fields[name] = `${known}; ${value}`
  else if (!SINGULAR.has(name)) fields[name] = `${known}, ${value}`
}

function add(fields: Fields, name: string, value: string): void {
  const known = fields[name]
  if (known === undefined) fields[name] = value
  else if (typeof known === 'string') fields[name] = [known, value]
  else known.push(value)
}

// The blanks around a value are not part of it.

function afterBlanks(text: string, start: number, end: number): number {
  while (start < end && isBlank(text.charCodeAt(start))) start++
  return start
}

/** A tab behind a value is a blank as well, but parsers differ about that: to Node's, `chunked` with one is another coding. */
function beforeBlanks(text: string, start: number, end: number, isStrict: boolean): number {
  while (end > start && isBlank(text.charCodeAt(end - 1))) {
    if (isStrict && text.charCodeAt(end - 1) === TAB) throw malformed('a tab behind a header value')
    end--
  }
  return end
}

const isBlank = (code: number): boolean => code === SPACE || code === TAB
