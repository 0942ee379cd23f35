import { STATUS_CODES } from 'node:http'
import { causeOf, explain, Failure, type FailureCode, type ReachedLimit } from '../core/index.ts'

/** What a client gets that no response object can answer: header lines beside framing, and a body. */
export interface Refusal {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** What clients are held to before there is a request, as it is told them. */
export interface ConnectionLimits {
  /** Bytes of a header section, and how long it and a whole request may take. */
  readonly headers: ReachedLimit
  readonly header: ReachedLimit
  readonly request: ReachedLimit
}

/** Codes of a connection that the client has broken off. */
const GONE: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE'])

/** The failure for what can't be read, or did not come in time; undefined when the client has merely left. */
export function readingFailure(error: Error, limits: ConnectionLimits, isInRequest: boolean): Failure | undefined {
  const { code } = error as NodeJS.ErrnoException
  if (code !== undefined && GONE.has(code)) return undefined
  const failed = failureCode(code)
  const time = isInRequest ? limits.request : limits.header
  const limit = failed === 'headers_too_large' ? limits.headers : failed === 'request_timeout' ? time : undefined
  return new Failure(failed, { cause: error, limit })
}

/** What the log says of a connection that was refused before there was a request. */
export function toldOf(failure: Failure): object {
  const { cause: why, remedy } = explain(failure)
  return { status: failure.status, reason: failure.code, cause: causeOf(failure.cause), why, remedy }
}

function failureCode(code: string | undefined): FailureCode {
  if (code === 'WIRE_HEAD_TOO_LARGE') return 'headers_too_large'
  if (code === 'WIRE_REQUEST_LATE' || code === 'ERR_TLS_HANDSHAKE_TIMEOUT') return 'request_timeout'
  return 'bad_request'
}

/** A whole answer as it goes over the wire; the connection ends with it (RFC 9112 §2.2). */
export function renderRefusal({ status }: Failure, { headers, body }: Refusal): string {
  const lines = Object.entries({ ...headers, 'content-length': String(Buffer.byteLength(body)), connection: 'close' })
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  return `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n${head}\r\n${body}`
}
