import { STATUS_CODES } from 'node:http'
import { fieldNameOf, isFieldValue } from './fields.ts'
import { WireError } from './wire-error.ts'

/** Inputs for the head of a response besides status and headers. */
export interface AnswerContext {
  readonly isHead: boolean
  /** The response to HTTP/1.0, which has no chunks. */
  readonly isOld: boolean
  /** Whether the server side keeps the connection. */
  readonly keeps: boolean
  /** Value of `Keep-Alive`; undefined for none. */
  readonly keepAlive: string | undefined
  /** Length of the body, if it is complete. */
  readonly length: number | undefined
}

/** The head of a response and its consequences. */
export interface AnswerHeadWritten {
  /** Including the final empty line, Latin-1. */
  readonly text: string
  readonly isChunked: boolean
  readonly hasBody: boolean
  /** Length of the body, if declared. */
  readonly length: number | undefined
  readonly keeps: boolean
}

const CLOSE = /(?:^|,)[\t ]*close[\t ]*(?:,|$)/i

/**
 * Writes the head of an HTTP/1.1 response. Framing comes from the headers; without any it is derived: the length of a
 * complete body, chunks for any other (for HTTP/1.0 the end of the connection), nothing without a body (HEAD, 1xx,
 * 204, 304). `Date`, `Connection` and `Keep-Alive` are added if missing. Throws `WireError` WIRE_REQUEST for a name
 * that is not a token and for a value with control characters. `headers` is flat (name, value, …).
 */
export function writeAnswerHead(status: number, headers: readonly string[], context: AnswerContext): AnswerHeadWritten {
  const hasBody = !context.isHead && status >= 200 && status !== 204 && status !== 304
  let text = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'unknown'}\r\n`
  let { keeps } = context
  let hasDate = false
  let hasConnection = false
  let isChunked = false
  let length: number | undefined
  const { isOld } = context
  for (let index = 0; index < headers.length; index += 2) {
    const raw = headers[index] ?? ''
    const value = headers[index + 1] ?? ''
    const name = checkedName(raw, value)
    if (isOld && name === 'transfer-encoding') continue
    text += `${raw}: ${value}\r\n`
    if (name === 'date') hasDate = true
    else if (name === 'content-length') length = Number(value)
    else if (name === 'transfer-encoding') isChunked = true
    else if (name === 'connection') {
      hasConnection = true
      keeps = !CLOSE.test(value)
    }
  }
  if (!hasDate) text += dateLine()
  // Only the end of the connection delimits it.
  if (isOld && hasBody && length === undefined && context.length === undefined) keeps = false
  if (!hasConnection) text += keeps ? KEEPS : CLOSES
  if (!hasConnection && keeps && context.keepAlive !== undefined) text += `Keep-Alive: ${context.keepAlive}\r\n`
  if (!hasBody) isChunked = false
  else if (!isChunked && length === undefined) {
    ;({ length } = context)
    isChunked = length === undefined && !isOld
    if (isChunked) text += 'Transfer-Encoding: chunked\r\n'
    else if (length !== undefined) text += `Content-Length: ${length}\r\n`
  }
  return { text: `${text}\r\n`, isChunked, hasBody, length, keeps }
}

/** The head of an interim response (RFC 9110 §15.2). Throws `WireError` like `writeAnswerHead`. */
export function writeInterimHead(status: number, headers: readonly string[]): string {
  let text = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'unknown'}\r\n`
  for (let index = 0; index < headers.length; index += 2) {
    const [raw = '', value = ''] = headers.slice(index, index + 2)
    checkedName(raw, value)
    text += `${raw}: ${value}\r\n`
  }
  return `${text}\r\n`
}

function checkedName(raw: string, value: string): string {
  const name = fieldNameOf(raw)
  if (name === undefined || !isFieldValue(value)) throw new WireError('WIRE_REQUEST', 'an answer with a bad header')
  return name
}

const KEEPS = 'Connection: keep-alive\r\n'
const CLOSES = 'Connection: close\r\n'

let date = ''
let dateUntilMs = 0

/** Computed once per second. */
function dateLine(): string {
  const nowMs = Date.now()
  if (nowMs >= dateUntilMs || nowMs < dateUntilMs - 1000) {
    date = `Date: ${new Date(nowMs).toUTCString()}\r\n`
    dateUntilMs = nowMs - (nowMs % 1000) + 1000
  }
  return date
}
