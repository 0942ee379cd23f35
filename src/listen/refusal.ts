import { METHODS, STATUS_CODES } from 'node:http'
import { type ClientRequest, causeOf, explain, Failure, type FailureCode, type ReachedLimit } from '../core/index.ts'

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

/** The failure for an error of Node's HTTP parser or of its deadlines; undefined when the client has merely left. */
export function parserFailure(error: Error, limits: ConnectionLimits, isInBody: boolean): Failure | undefined {
  const { code } = error as NodeJS.ErrnoException
  if (code !== undefined && GONE.has(code)) return undefined
  const failed = failureCode(code)
  const time = isInBody ? limits.request : limits.header
  const limit = failed === 'headers_too_large' ? limits.headers : failed === 'request_timeout' ? time : undefined
  return new Failure(failed, { cause: error, limit })
}

/** What the log says of a connection that was refused before there was a request. */
export function toldOf(failure: Failure): object {
  const { cause: why, remedy } = explain(failure)
  return { status: failure.status, reason: failure.code, cause: causeOf(failure.cause), why, remedy }
}

function failureCode(code: string | undefined): FailureCode {
  if (code === 'HPE_HEADER_OVERFLOW') return 'headers_too_large'
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return 'request_timeout'
  return 'bad_request'
}

/** Of the others the parser takes those of RTSP, with that protocol's name, and the source of a stream (ICE). */
const METHODS_OF_HTTP: ReadonlySet<string | undefined> = new Set(METHODS.filter((method) => method !== 'SOURCE'))
/** The usual ones are compared first. */
const isMethodOfHttp = (method: string | undefined): boolean =>
  method === 'POST' || method === 'GET' || method === 'DELETE' || method === 'OPTIONS' || METHODS_OF_HTTP.has(method)

/**
 * The failure for a request that Node's parser lets pass although it is not HTTP/1.1 or 1.0: another version or none (RFC
 * 9112 §2.3), a method of another protocol, or a length that nobody can count to.
 */
export function notUnderstood(request: ClientRequest): Failure | undefined {
  if (request.httpVersionMajor !== 1 || request.httpVersionMinor > 1)
    return bad('a version of HTTP that is not 1.1 or 1.0')
  if (!isMethodOfHttp(request.method)) return bad('no method of HTTP')
  const length = request.headers['content-length']
  return length !== undefined && Number(length) > Number.MAX_SAFE_INTEGER
    ? bad('a Content-Length beyond 2^53')
    : undefined
}

const bad = (detail: string): Failure => new Failure('bad_request', { detail })

/** A whole answer as it goes over the wire; the connection ends with it (RFC 9112 §2.2). */
export function renderRefusal({ status }: Failure, { headers, body }: Refusal): string {
  const lines = Object.entries({ ...headers, 'content-length': String(Buffer.byteLength(body)), connection: 'close' })
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  return `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n${head}\r\n${body}`
}
