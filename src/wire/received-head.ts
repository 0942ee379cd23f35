import { checkSection, type Fields, readFields } from './fields.ts'
import { requestFramingOf } from './framing.ts'
import { canBecomeSection } from './section-reader.ts'
import { WireError } from './wire-error.ts'

/** The head of a request that is what the strict grammar takes. */
export interface ReceivedHead {
  readonly method: string
  /** Origin-form: path and query. */
  readonly target: string
  /** Header lines as they stand, flat (name, value, …); no name twice. */
  readonly lines: string[]
  /** The same by lower-case name: each is one string. */
  readonly fields: Fields
  /** Bytes of the body, or what ends it. */
  readonly body: number | 'chunked'
  /** The connection stays after the answer. */
  readonly keeps: boolean
}

/** Why a head is not taken. Two kinds may ask to speak another protocol from there on: CONNECT, and an upgrade to this. */
export type Strange = 'strange' | 'connect' | { readonly upgrade: string }

/** RFC 9112 §3, with one blank between its parts, and methods that every parser knows. */
const REQUEST_LINE = /^(GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS) (\/[\x21\x22\x24-\x7e]*) HTTP\/1\.1$/

/**
 * Headers that ask for more than an answer, that some take for `Connection`, or of which Node makes something else than a
 * string.
 */
const STRANGE = ['expect', 'proxy-connection', 'set-cookie'] as const

/**
 * Reads the head of a request, without the empty line that ends it. What is not plain HTTP/1.1 in one reading is strange,
 * whether it is legal or not: a request line in any other form, control characters, a name that stands twice, framing that is refused (see
 * `requestFramingOf`), `Connection` that says anything but `close` or `keep-alive`, and whatever asks for more than an
 * answer.
 * @param bytes hold it from `from` on; what is kept of it is read from them and not a part of `text`
 */
export function readReceivedHead(
  text: string,
  bytes: Buffer = Buffer.from(text, 'latin1'),
  from = 0,
): ReceivedHead | Strange {
  try {
    return readHead(text, bytes, from)
  } catch (error) {
    if (error instanceof WireError) return 'strange'
    throw error
  }
}

function readHead(text: string, bytes: Buffer, from: number): ReceivedHead | Strange {
  checkSection(text)
  const end = text.indexOf('\r\n')
  const match = REQUEST_LINE.exec(end === -1 ? text : text.slice(0, end))
  if (match === null) return text.startsWith('CONNECT ') ? 'connect' : 'strange'
  const [, method = '', asked = ''] = match
  const lines: string[] = []
  const fields = readFields(text, end === -1 ? text.length : end + 2, { bytes, from, lines })
  if (typeof fields['upgrade'] === 'string') return { upgrade: fields['upgrade'] }
  for (const name of STRANGE) if (fields[name] !== undefined) return 'strange'
  const keeps = keepsOf(fields['connection'])
  if (keeps === undefined) return 'strange'
  const targetAt = from + method.length + 1
  const target = bytes.toString('latin1', targetAt, targetAt + asked.length)
  return { method, target, lines, fields, body: requestFramingOf(fields), keeps }
}

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS']
const BEGINNINGS = [...METHODS.map((method) => `${method} /`), 'CONNECT ']
const LONGEST_BEGINNING = 9

/**
 * Whether what has come of a head can still become one that is taken, so that nobody waits for the end of what has none. Looks at
 * no byte before `from - 1`, but for the first ones while there are few.
 */
export function canBecomeHead(held: Buffer, from: number): boolean {
  if (from < LONGEST_BEGINNING) {
    const begun = held.toString('latin1', 0, LONGEST_BEGINNING)
    if (!BEGINNINGS.some((beginning) => beginning.startsWith(begun) || begun.startsWith(beginning))) return false
  }
  return canBecomeSection(held, from)
}

/** Undefined for what says anything else. */
function keepsOf(connection: string | string[] | undefined): boolean | undefined {
  if (connection === undefined || connection === 'keep-alive') return true
  if (typeof connection !== 'string') return undefined
  const said = connection.toLowerCase()
  return said === 'close' ? false : said === 'keep-alive' ? true : undefined
}
