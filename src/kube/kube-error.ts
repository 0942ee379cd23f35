import { parseRetryAfter } from '../http/index.ts'

/** An error response of the API server (its `Status` object), or no response (status 0). */
export class KubeError extends Error {
  /** HTTP status; 0 without a usable response. */
  readonly status: number
  /** Machine-readable reason, such as `Conflict`, `NotFound`, `Expired`; may be empty. */
  readonly reason: string
  /** Seconds after which to retry, 1 to 300. */
  readonly retryAfterSeconds: number | undefined

  constructor(
    status: number,
    reason: string,
    options: {
      readonly message?: string
      readonly retryAfterSeconds?: number | undefined
      readonly cause?: unknown
    } = {},
  ) {
    super(options.message ?? (status === 0 ? 'no response from the API server' : `${status} ${reason}`), {
      cause: options.cause,
    })
    this.name = 'KubeError'
    this.status = status
    this.reason = reason
    this.retryAfterSeconds = options.retryAfterSeconds
  }
}

export const isNotFound = (error: unknown): boolean => error instanceof KubeError && error.status === 404

/** The resource version is too old: list again (410, also within a watch). */
export const isExpired = (error: unknown): boolean =>
  error instanceof KubeError && (error.status === 410 || error.reason === 'Expired' || error.reason === 'Gone')

/**
 * The server's data are older than the resource version: list again. It returns 504 (`ResourceVersionTooLarge`), which
 * does not mean overload.
 */
export const isTooNew = (error: unknown): boolean =>
  error instanceof KubeError && error.message.startsWith('Too large resource version')

/** Maximum length of a stored message: it names objects and rules, never values of secrets. */
const MAX_MESSAGE = 2000

/** Maximum accepted `Retry-After` in seconds, so that a day does not stop the operator for a day. */
const MOST_RETRY_AFTER_SECONDS = 300

/**
 * Parses the `Status` of an unsuccessful response; other bodies give the HTTP status. `retryAfter` is the header (RFC
 * 9110 §10.2.3, seconds or a date).
 */
export function kubeErrorOf(status: number, body: Buffer, retryAfter?: string): KubeError {
  return kubeErrorFrom(status, parsed(body), parseRetryAfter(retryAfter, Date.now()))
}

/** The same for a parsed object: the `ERROR` event of a watch holds a `Status`, whose `code` wins. */
export function kubeErrorFrom(status: number, answer: unknown, retryAfterSeconds?: number): KubeError {
  const { code, reason, message, details } = (typeof answer === 'object' && answer !== null ? answer : {}) as {
    code?: unknown
    reason?: unknown
    message?: unknown
    details?: { retryAfterSeconds?: unknown }
  }
  const wanted = retryAfterSeconds ?? details?.retryAfterSeconds
  return new KubeError(typeof code === 'number' ? code : status, typeof reason === 'string' ? reason : '', {
    ...(typeof message === 'string' ? { message: message.slice(0, MAX_MESSAGE) } : {}),
    retryAfterSeconds:
      typeof wanted === 'number' && wanted > 0 ? Math.min(Math.ceil(wanted), MOST_RETRY_AFTER_SECONDS) : undefined,
  })
}

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'))
  } catch {
    return undefined
  }
}
