import errors from 'undici/lib/core/errors.js'
import { causeOf, Failure, type FailureCode } from '../core/index.ts'
import { limitOfBackend, type Timeouts } from '../net/index.ts'

/** Methods that may be sent again without anybody noticing (RFC 9110 §9.2.2). */
const IDEMPOTENT: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE'])

/** True for methods that are safe or idempotent (RFC 9110 §9.2). */
export const isIdempotent = (method: string): boolean => IDEMPOTENT.has(method)

const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : ''

/** The connection went away: the peer closed or reset it, or it could not be written to. */
const LOST: ReadonlySet<string> = new Set(['WIRE_CLOSED', 'UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE', 'ECONNABORTED'])

// undici says with the code of a lost connection that a backend switches protocols by itself.
const UNASKED = /^bad (?:upgrade|response)$/

/** True when a connection that stood was lost, so that another one may fare better. */
export const isConnectionLost = (error: unknown): boolean =>
  LOST.has(codeOf(error)) && !(error instanceof Error && UNASKED.test(error.message))

// What undici says about answers that break the rules of HTTP, beside what its parser throws.
const MALFORMED: ReadonlySet<string> = new Set([
  'UND_ERR_HEADERS_OVERFLOW',
  'UND_ERR_RES_CONTENT_LENGTH_MISMATCH',
  'UND_ERR_RES_EXCEEDED_MAX_SIZE',
  'UND_ERR_RESPONSE',
  'WIRE_MALFORMED',
  'WIRE_HEAD_TOO_LARGE',
])

// It fell silent within its answer.
const SILENT: ReadonlySet<string> = new Set(['UND_ERR_BODY_TIMEOUT', 'WIRE_IDLE'])

/** What an egress proxy answered instead of opening a tunnel. */
const REFUSED_BY_PROXY = /^EGRESS_STATUS_/

const failureCode = (error: unknown, isSent: boolean): FailureCode => {
  const code = codeOf(error)
  if (code === 'UND_ERR_HEADERS_TIMEOUT' || code === 'WIRE_FIRST_BYTE') return 'backend_timeout'
  if (code === 'UND_ERR_SOCKET' && error instanceof Error && UNASKED.test(error.message)) return 'backend_error'
  if (MALFORMED.has(code) || error instanceof errors.HTTPParserError) return 'backend_error'
  // Our own header policy lets nothing through that undici refuses, so what it refuses came from the caller.
  if (code === 'UND_ERR_INVALID_ARG' || code === 'UND_ERR_NOT_SUPPORTED') return 'bad_request'
  if (code === 'UND_ERR_REQ_CONTENT_LENGTH_MISMATCH' || code === 'WIRE_REQUEST') return 'bad_request'
  if (REFUSED_BY_PROXY.test(causeOf(error).code ?? '')) return 'egress_proxy_refused'
  return isSent ? 'backend_no_answer' : 'backend_unreachable'
}

/**
 * The failure for an error that came before the answer began: backend_timeout (504) for a slow first byte, backend_error
 * (502) for a malformed answer, egress_proxy_refused (502), and for everything else between us and the backend
 * backend_no_answer (502) where at least a part of the request was sent, or backend_unreachable (502).
 */
export const failureOf = (error: unknown, isSent: boolean, timeouts: Timeouts, at: string): Failure =>
  error instanceof Failure
    ? error
    : new Failure(failureCode(error, isSent), { cause: error, limit: limitOfBackend(error, timeouts), at })

/** The failure for an error that came when the answer had begun. */
export const tornBy = (error: unknown, timeouts: Timeouts, at: string): Failure =>
  error instanceof Failure
    ? error
    : new Failure(SILENT.has(codeOf(error)) ? 'backend_timeout' : 'backend_error', {
        detail: 'the answer broke off',
        cause: error,
        limit: limitOfBackend(error, timeouts),
        at,
      })
