import { noPrototype } from '../core/index.ts'
import { malformed } from './wire-error.ts'

/** Header lines by lower-case name; repeated ones as an array in order. It has no prototype of `Object`. */
export type Fields = Record<string, string | string[] | undefined>

/** Maximum lines of a response head or trailer section. */
const MAX_LINES = 256

/** RFC 9110 §5.6.2. */
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/

/** RFC 9110 §5.5, Latin-1 as Node reads and writes it: no control characters except tabs. */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

/** Lines separated by CRLF, without other CR, LF or control characters. */
const SECTION = /^[\t\x20-\x7e\x80-\xff]*(?:\r\n[\t\x20-\x7e\x80-\xff]*)*$/

const SPACE = 0x20
const TAB = 0x09

/** Maximum cached names; then the cache is cleared, so random names cost time instead of memory. */
const MAX_CACHED_NAMES = 1024
const MAX_CACHED_NAMES_LENGTH = 64
const cachedNames = new Map<string, Name>()

/** A name as received and in lower case, both independent of the head's text. */
interface Name {
  readonly raw: string
  readonly name: string
}

const FieldRecord = noPrototype<Fields[string]>()

export const isToken = (text: string): boolean => TOKEN.test(text)
export const isFieldValue = (text: string): boolean => VALUE.test(text)

/** A name in lower case; undefined if it is not a token (RFC 9110 §5.1). */
export function fieldNameOf(raw: string): string | undefined {
  return nameOf(raw)?.name
}

function nameOf(raw: string): Name | undefined {
  const known = cachedNames.get(raw)
  if (known !== undefined) return known
  if (!TOKEN.test(raw)) return undefined
  const own = copied(raw)
  const name = { raw: own, name: own.toLowerCase() }
  if (raw.length <= MAX_CACHED_NAMES_LENGTH) {
    if (cachedNames.size >= MAX_CACHED_NAMES) cachedNames.clear()
    cachedNames.set(own, name)
  }
  return name
}

/** V8 copies shorter substrings; a longer one keeps the whole text alive, including the secrets of a head. */
const LEAST_PART = 13

/** A copy of the text that is not a substring. */
const copied = (text: string): string =>
  text.length < LEAST_PART ? text : Buffer.from(text, 'latin1').toString('latin1')

/** Throws `WireError` for a section with an invalid character, or with a bare CR or LF. */
export function checkSection(text: string): void {
  if (!SECTION.test(text)) throw malformed('a control character in the head')
}

/** The bytes of a section, from which each line is read as a string of its own. */
export interface OwnLines {
  readonly bytes: Buffer
  /** Offset of the section in the bytes. */
  readonly from: number
  /** Receives the lines as received, flat (name, value, …). */
  readonly lines: string[]
}

/**
 * The field lines of a checked section from `at` on (RFC 9112 §5): `name:` without whitespace before the colon, no
 * folding. Throws `WireError` for any other line, and for more than 256. `own` receives the lines of a request: their
 * number is limited by the size of its head, and repeated names become one value (see `addRequestField`).
 */
export function readFields(text: string, at: number, own?: OwnLines): Fields {
  const fields = new FieldRecord()
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

/** Fields that determine the end of a request, its successor, and its destination. */
const FRAMING: ReadonlySet<string> = new Set([
  'content-length',
  'transfer-encoding',
  'connection',
  'upgrade',
  'expect',
  'host',
])

/** Fields with one value. The first line counts, as in Node; security checks read all lines. */
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
 * Adds a line of a request: lists are joined (RFC 9110 §5.3), `cookie` with a semicolon (RFC 6265 §5.4), `set-cookie`
 * is an array. Throws `WireError` for a second length or coding.
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

// Whitespace around a value is not part of it.

function afterBlanks(text: string, start: number, end: number): number {
  while (start < end && isBlank(text.charCodeAt(start))) start++
  return start
}

/** A trailing tab is whitespace as well, but parsers differ: for Node's, `chunked` with one is another coding. */
function beforeBlanks(text: string, start: number, end: number, isStrict: boolean): number {
  while (end > start && isBlank(text.charCodeAt(end - 1))) {
    if (isStrict && text.charCodeAt(end - 1) === TAB) throw malformed('a tab behind a header value')
    end--
  }
  return end
}

const isBlank = (code: number): boolean => code === SPACE || code === TAB
