import type { AnswerHead } from './answer-head.ts'
import type { Fields } from './fields.ts'
import { malformed } from './wire-error.ts'

/** The end of a response, and whether its connection may be reused. */
export interface Framing {
  /** Length of the body, or its delimiter. */
  readonly body: number | 'chunked' | 'until-close'
  /** Milliseconds for which the peer keeps the connection; 0 = not at all, undefined = not specified. */
  readonly keepMs: number | undefined
}

const NO_HINT: Framing = { body: 0, keepMs: undefined }

const LENGTH = /^\d{1,16}$/
const CLOSE = /(?:^|,)[\t ]*close[\t ]*(?:,|$)/i
const TIMEOUT = /(?:^|[,\t ])timeout=(\d{1,6})(?:$|[,\t ])/i

/**
 * The framing of an answer (RFC 9112 §6.3, stricter). The first row that fits counts; `CL` is Content-Length, `TE`
 * Transfer-Encoding, "kept" means that the connection may be used again. Throws `WireError` for rows with "refused".
 *
 * | answer                                          | body        | connection                       |
 * | ----------------------------------------------- | ----------- | -------------------------------- |
 * | TE and CL                                       | refused     |                                  |
 * | TE in HTTP/1.0                                  | refused     |                                  |
 * | TE twice, or anything but `chunked`             | refused     |                                  |
 * | CL twice, as a list, no digits, or beyond 2^53  | refused     |                                  |
 * | 1xx with TE, or with a CL that is not 0         | refused     |                                  |
 * | 1xx                                             | none        | another head follows             |
 * | to HEAD                                         | none        | kept                             |
 * | 204 or 304 with TE, or with a CL that is not 0  | none        | not kept: a body may follow      |
 * | 204, 304                                        | none        | kept                             |
 * | TE                                              | chunks      | kept                             |
 * | CL                                              | that many   | kept                             |
 * | neither                                         | until close | not kept                         |
 *
 * Whatever the row, HTTP/1.0 and `Connection: close` are not kept, and `Keep-Alive: timeout=` bounds how long.
 */
export function framingOf({ status, isOld, fields }: AnswerHead, isHead: boolean): Framing {
  const length = lengthOf(fields)
  const isChunked = chunkedOf(fields)
  if (isChunked && length !== undefined) throw malformed('a length and chunks')
  if (isChunked && isOld) throw malformed('chunks in HTTP/1.0')
  const hasBodyFields = isChunked || (length !== undefined && length !== 0)
  if (status < 200) {
    if (hasBodyFields) throw malformed('an interim answer with a body')
    return NO_HINT
  }
  const keepMs = isOld ? 0 : keepMsOf(fields)
  if (isHead) return { body: 0, keepMs }
  if (status === 204 || status === 304) return { body: 0, keepMs: hasBodyFields ? 0 : keepMs }
  if (isChunked) return { body: 'chunked', keepMs }
  if (length !== undefined) return { body: length, keepMs }
  return { body: 'until-close', keepMs: 0 }
}

/**
 * Where a request ends (RFC 9112 §6.3, stricter). The first row that fits counts; `CL` is Content-Length, `TE`
 * Transfer-Encoding. Throws `WireError` for rows with "refused".
 *
 * | request                                         | body        |
 * | ----------------------------------------------- | ----------- |
 * | TE and CL                                       | refused     |
 * | TE in HTTP/1.0                                  | refused     |
 * | TE twice, or anything but `chunked`             | refused     |
 * | CL twice, as a list, no digits, or beyond 2^53  | refused     |
 * | TE                                              | chunks      |
 * | CL                                              | that many   |
 * | neither                                         | none        |
 */
export function requestFramingOf(fields: Fields, isOld: boolean): number | 'chunked' {
  const length = lengthOf(fields)
  if (!chunkedOf(fields)) return length ?? 0
  if (length !== undefined) throw malformed('a length and chunks')
  if (isOld) throw malformed('chunks in HTTP/1.0')
  return 'chunked'
}

function lengthOf(fields: Fields): number | undefined {
  const value = fields['content-length']
  if (value === undefined) return undefined
  const length = typeof value === 'string' && LENGTH.test(value) ? Number(value) : Number.NaN
  if (!Number.isSafeInteger(length)) throw malformed('a Content-Length that is no length')
  return length
}

function chunkedOf(fields: Fields): boolean {
  const value = fields['transfer-encoding']
  if (value === undefined) return false
  if (typeof value === 'string' && (value === 'chunked' || value.toLowerCase() === 'chunked')) return true
  throw malformed('a transfer coding other than chunked')
}

function keepMsOf(fields: Fields): number | undefined {
  const connection = fields['connection']
  if (connection !== undefined && connection !== 'keep-alive' && CLOSE.test(joined(connection))) return 0
  const hint = fields['keep-alive']
  const seconds = hint === undefined ? null : TIMEOUT.exec(joined(hint))
  return seconds === null ? undefined : Number(seconds[1]) * 1000
}

const joined = (value: string | readonly string[]): string => (typeof value === 'string' ? value : value.join(','))
