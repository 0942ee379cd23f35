import { checkSection, type Fields, readFields } from './fields.ts'
import { malformed } from './wire-error.ts'

/** The head of a response as received. */
export interface AnswerHead {
  /** 100 to 599. */
  readonly status: number
  /** HTTP/1.0; otherwise HTTP/1.1. */
  readonly isOld: boolean
  readonly fields: Fields
}

/** RFC 9112 §4; the space before an empty reason is often missing. */
const STATUS_LINE = /^HTTP\/1\.([01]) ([1-5]\d\d)(?: .*)?$/

/** Parses a head without its final empty line. Throws `WireError`. */
export function readAnswerHead(text: string): AnswerHead {
  checkSection(text)
  const end = text.indexOf('\r\n')
  const line = end === -1 ? text : text.slice(0, end)
  const match = STATUS_LINE.exec(line)
  if (match === null) throw malformed('no status line of HTTP/1.1')
  return {
    status: Number(match[2]),
    isOld: match[1] === '0',
    fields: end === -1 ? readFields(text, text.length) : readFields(text, end + 2),
  }
}
