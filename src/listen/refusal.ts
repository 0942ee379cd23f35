import { STATUS_CODES } from 'node:http'
import { causeOf, explain, Failure, type FailureCode, type ReachedLimit } from '../core/index.ts'

/** The answer to a client without a response object: header lines beside framing, and a body. */
export interface Refusal {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** Limits before a request is complete, as reported to the client. */
export interface ConnectionLimits {
  /** Maximum bytes of a header section, and the time for it and for a whole request. */
  readonly headers: ReachedLimit
  readonly header: ReachedLimit
  readonly request: ReachedLimit
}

/** Error codes of a connection that the client closed. */
const GONE: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE'])

/** The failure for unreadable or late input; undefined if the client has merely disconnected. */
export function readingFailure(error: Error, limits: ConnectionLimits, isInRequest: boolean): Failure | undefined {
  const { code } = error as NodeJS.ErrnoException
  if (code !== undefined && GONE.has(code)) return undefined
  const failed = failureCode(code)
  const time = isInRequest ? limits.request : limits.header
  const limit = failed === 'headers_too_large' ? limits.headers : failed === 'request_timeout' ? time : undefined
  return new Failure(failed, { cause: error, limit })
}

/** Log fields of a connection that was rejected before a request. */
export function toldOf(failure: Failure): object {
  const { cause: why, remedy } = explain(failure)
  return { status: failure.status, reason: failure.code, cause: causeOf(failure.cause), why, remedy }
}

function failureCode(code: string | undefined): FailureCode {
  if (code === 'WIRE_HEAD_TOO_LARGE') return 'headers_too_large'
  if (code === 'WIRE_REQUEST_LATE' || code === 'ERR_TLS_HANDSHAKE_TIMEOUT') return 'request_timeout'
  return 'bad_request'
}

/** The complete answer on the wire; the connection ends with it (RFC 9112 §2.2). */
export function renderRefusal({ status }: Failure, { headers, body }: Refusal): string {
  const lines = Object.entries({ ...headers, 'content-length': String(Buffer.byteLength(body)), connection: 'close' })
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  return `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n${head}\r\n${body}`
}
