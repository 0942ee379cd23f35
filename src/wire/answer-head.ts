import { checkSection, type Fields, readFields } from './fields.ts'
import { malformed } from './wire-error.ts'

/** The head of an answer, as it stands on the wire. */
export interface AnswerHead {
  /** 100 to 599. */
  readonly status: number
  /** HTTP/1.0; everything else is HTTP/1.1. */
  readonly isOld: boolean
  readonly fields: Fields
}

/** RFC 9112 §4; the blank before an empty reason is often left out. */
const STATUS_LINE = /^HTTP\/1\.([01]) ([1-5]\d\d)(?: .*)?$/

/** Reads a head without the empty line that ends it. Throws `WireError`. */
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
