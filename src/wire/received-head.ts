import { METHODS } from 'node:http'
import { checkSection, type Fields, readFields } from './fields.ts'
import { requestFramingOf } from './framing.ts'
import { canBecomeSection } from './section-reader.ts'
import { malformed } from './wire-error.ts'

/** The head of a request. */
export interface ReceivedHead {
  readonly method: string
  /** Origin-form (path and query), absolute-form or `*`; unrestricted for CONNECT. */
  readonly target: string
  /** HTTP/1.0; otherwise HTTP/1.1. */
  readonly isOld: boolean
  /** Header lines as received, flat (name, value, …). */
  readonly lines: string[]
  /** The same by lower-case name, each a string except `set-cookie`; see `readFields` for repeated names. */
  readonly fields: Fields
  /** Length of the body, or its delimiter. */
  readonly body: number | 'chunked'
  /** Whether the connection is kept after the response. */
  readonly keeps: boolean
  /** The client waits for `100 Continue` before it sends the body, or has an unsupported expectation. */
  readonly expects: 'continue' | 'other' | undefined
  /** The requested protocol (RFC 9110 §7.8); undefined also if it cannot begin after this request. */
  readonly upgrade: string | undefined
}

/** RFC 9112 §3; several spaces between the parts count as one, as §3 allows. */
const REQUEST_LINE = /^([A-Z-]+) +([\x21-\x7e]+) +HTTP\/1\.([01])$/

const SLASH = 0x2f
/**
 * Besides origin-form: asterisk-form, or absolute-form without user information. The server decides which of them it
 * supports.
 */
const TARGET = /^(?:\*$|https?:\/\/[A-Za-z0-9._~:[\]-]+(?:[/?]|$))/i

/** Methods of Node's parser except SOURCE (ICE); common ones are compared first. */
const KNOWN_METHODS: ReadonlySet<string> = new Set(METHODS.filter((method) => method !== 'SOURCE'))
const isMethod = (method: string): boolean =>
  method === 'POST' || method === 'GET' || method === 'DELETE' || method === 'OPTIONS' || KNOWN_METHODS.has(method)

/**
 * Parses the head of a request, without its final empty line. Throws `WireError` for anything that is not unambiguous
 * HTTP/1.1 or 1.0: any other form of request line, an unknown method, control characters, invalid framing (see
 * `requestFramingOf`). `bytes` contain it from `from` on; kept strings are read from them instead of `text`.
 */
export function readReceivedHead(text: string, bytes: Buffer = Buffer.from(text, 'latin1'), from = 0): ReceivedHead {
  checkSection(text)
  const end = text.indexOf('\r\n')
  const line = end === -1 ? text : text.slice(0, end)
  const { method, target: asked, isOld } = requestLineOf(line)
  const lines: string[] = []
  const fields = readFields(text, end === -1 ? text.length : end + 2, { bytes, from, lines })
  const framed = requestFramingOf(fields, isOld)
  // CONNECT has no body, and following data is not read.
  const body = method === 'CONNECT' ? 0 : framed
  const targetAt = from + line.indexOf(asked, method.length)
  const connection = connectionOf(fields['connection'])
  // Some servers treat it like `Connection`: they would read following data as another request.
  const closes = connection.close || connectionOf(fields['proxy-connection']).close
  return {
    method,
    target: bytes.toString('latin1', targetAt, targetAt + asked.length),
    isOld,
    lines,
    fields,
    body,
    keeps: method !== 'CONNECT' && !closes && (!isOld || connection.keepAlive),
    expects: isOld || fields['expect'] === undefined ? undefined : expectationOf(fields['expect'], body),
    upgrade: connection.upgrade && !isOld && body === 0 ? joined(fields['upgrade']) : undefined,
  }
}

/** The parts of a request line. Throws `WireError` for any other line. */
export function requestLineOf(line: string): Pick<ReceivedHead, 'method' | 'target' | 'isOld'> {
  const match = REQUEST_LINE.exec(line)
  if (match === null) throw malformed('no request line of HTTP/1.1 or 1.0')
  const [, method = '', target = '', minor] = match
  if (!isMethod(method)) throw malformed('no method of HTTP')
  const isOrigin = target.charCodeAt(0) === SLASH
  if (!isOrigin && method !== 'CONNECT' && !TARGET.test(target)) throw malformed('a request target in no known form')
  return { method, target, isOld: minor === '0' }
}

/** RFC 9110 §10.1.1. An empty body needs no expectation. */
function expectationOf(expect: string | string[], body: number | 'chunked'): 'continue' | 'other' | undefined {
  if (joined(expect)?.toLowerCase() !== '100-continue') return 'other'
  return body === 0 ? undefined : 'continue'
}

interface ConnectionOptions {
  readonly close: boolean
  readonly keepAlive: boolean
  readonly upgrade: boolean
}

const NOTHING_SAID: ConnectionOptions = { close: false, keepAlive: false, upgrade: false }
const KEEP_ALIVE: ConnectionOptions = { ...NOTHING_SAID, keepAlive: true }

/** The supported options of the list (RFC 9110 §7.6.1). */
function connectionOf(value: string | string[] | undefined): ConnectionOptions {
  if (value === undefined) return NOTHING_SAID
  if (value === 'keep-alive') return KEEP_ALIVE
  const options = (joined(value) ?? '').toLowerCase().split(',')
  const has = (name: string): boolean => options.some((option) => option.trim() === name)
  return { close: has('close'), keepAlive: has('keep-alive'), upgrade: has('upgrade') }
}

const joined = (value: string | readonly string[] | undefined): string | undefined =>
  value === undefined || typeof value === 'string' ? value : value.join(', ')

const BEGINNINGS = [...KNOWN_METHODS].map((method) => `${method} `)
const LONGEST_BEGINNING = Math.max(...BEGINNINGS.map(({ length }) => length))

/**
 * Whether a partial head can still become valid, to fail early. Reads no byte before `from - 1`, except the first
 * few.
 */
export function canBecomeHead(held: Buffer, from: number): boolean {
  if (from < LONGEST_BEGINNING) {
    const begun = held.toString('latin1', 0, LONGEST_BEGINNING)
    if (!BEGINNINGS.some((beginning) => beginning.startsWith(begun) || begun.startsWith(beginning))) return false
  }
  return canBecomeSection(held, from)
}
