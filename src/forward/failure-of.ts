import errors from 'undici/lib/core/errors.js'
import { causeOf, Failure, type FailureCode } from '../core/index.ts'
import { limitOfBackend, type Timeouts } from '../net/index.ts'

/** Idempotent methods, which may be repeated (RFC 9110 §9.2.2). */
const IDEMPOTENT: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE'])

/** Whether a method is safe or idempotent (RFC 9110 §9.2). */
export const isIdempotent = (method: string): boolean => IDEMPOTENT.has(method)

const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : ''

/** The connection was lost: closed or reset by the peer, or not writable. */
const LOST: ReadonlySet<string> = new Set(['WIRE_CLOSED', 'UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE', 'ECONNABORTED'])

// undici reports an unsolicited protocol switch with the code of a lost connection.
const UNSOLICITED = /^bad (?:upgrade|response)$/

/** Whether an established connection was lost, so that a new one may succeed. */
export const isConnectionLost = (error: unknown): boolean =>
  LOST.has(codeOf(error)) && !(error instanceof Error && UNSOLICITED.test(error.message))

// undici's errors for invalid HTTP, besides those of its parser.
const MALFORMED: ReadonlySet<string> = new Set([
  'UND_ERR_HEADERS_OVERFLOW',
  'UND_ERR_RES_CONTENT_LENGTH_MISMATCH',
  'UND_ERR_RES_EXCEEDED_MAX_SIZE',
  'UND_ERR_RESPONSE',
  'WIRE_MALFORMED',
  'WIRE_HEAD_TOO_LARGE',
])

// No data within the response.
const SILENT: ReadonlySet<string> = new Set(['UND_ERR_BODY_TIMEOUT', 'WIRE_IDLE'])

/** Status of an egress proxy that refused a tunnel. */
const REFUSED_BY_PROXY = /^EGRESS_STATUS_/

const failureCode = (error: unknown, isSent: boolean): FailureCode => {
  const code = codeOf(error)
  if (code === 'UND_ERR_HEADERS_TIMEOUT' || code === 'WIRE_FIRST_BYTE') return 'backend_timeout'
  if (code === 'UND_ERR_SOCKET' && error instanceof Error && UNSOLICITED.test(error.message)) return 'backend_error'
  if (MALFORMED.has(code) || error instanceof errors.HTTPParserError) return 'backend_error'
  // The header policy passes nothing that undici rejects, so the client caused it.
  if (code === 'UND_ERR_INVALID_ARG' || code === 'UND_ERR_NOT_SUPPORTED') return 'bad_request'
  if (code === 'UND_ERR_REQ_CONTENT_LENGTH_MISMATCH' || code === 'WIRE_REQUEST') return 'bad_request'
  if (REFUSED_BY_PROXY.test(causeOf(error).code ?? '')) return 'egress_proxy_refused'
  return isSent ? 'backend_no_answer' : 'backend_unreachable'
}

/**
 * Maps an error before the response: backend_timeout (504) for a late response head, backend_error (502) for invalid
 * HTTP, egress_proxy_refused (502); else backend_no_answer (502) if the request was sent at least in part, or
 * backend_unreachable (502).
 */
export const failureOf = (error: unknown, isSent: boolean, timeouts: Timeouts, at: string): Failure =>
  error instanceof Failure
    ? error
    : new Failure(failureCode(error, isSent), { cause: error, limit: limitOfBackend(error, timeouts), at })

/** Maps an error after the response has started. */
export const abortedBy = (error: unknown, timeouts: Timeouts, at: string): Failure =>
  error instanceof Failure
    ? error
    : new Failure(SILENT.has(codeOf(error)) ? 'backend_timeout' : 'backend_error', {
        detail: 'the response was aborted',
        cause: error,
        limit: limitOfBackend(error, timeouts),
        at,
      })
