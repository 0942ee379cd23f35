import { parseRetryAfter } from '../http/index.ts'

/** The API server's answer to a request that it refused (its `Status` object), or no answer at all (status 0). */
export class KubeError extends Error {
  /** HTTP status; 0 when there was no usable answer. */
  readonly status: number
  /** Machine-readable reason, such as `Conflict`, `NotFound`, `Expired`; empty when there is none. */
  readonly reason: string
  /** Whole seconds after which the server wants to be asked again, 1 to 300. */
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
    super(options.message ?? (status === 0 ? 'no answer from the API server' : `${status} ${reason}`), {
      cause: options.cause,
    })
    this.name = 'KubeError'
    this.status = status
    this.reason = reason
    this.retryAfterSeconds = options.retryAfterSeconds
  }
}

export const isNotFound = (error: unknown): boolean => error instanceof KubeError && error.status === 404

/** The resource version is too old to go on from: list again (410, also inside a watch). */
export const isExpired = (error: unknown): boolean =>
  error instanceof KubeError && (error.status === 410 || error.reason === 'Expired' || error.reason === 'Gone')

/**
 * The server does not know so new a resource version, because its data are older than what we have seen: list again. It says
 * so with 504, which is no word of its load (`ResourceVersionTooLarge`).
 */
export const isTooNew = (error: unknown): boolean =>
  error instanceof KubeError && error.message.startsWith('Too large resource version')

/** Longest text of the server that is kept: it names objects and rules, never secrets' values. */
const MAX_MESSAGE = 2000

/** Longest rest, in seconds, that is granted to a server: what asks for a day must not be forgotten for a day. */
const MOST_RETRY_AFTER_SECONDS = 300

/**
 * Reads the `Status` of an answer that is no success; anything else becomes its HTTP status. `retryAfter` is the header
 * (RFC 9110 §10.2.3, seconds or a date).
 */
export function kubeErrorOf(status: number, body: Buffer, retryAfter?: string): KubeError {
  return kubeErrorFrom(status, parsed(body), parseRetryAfter(retryAfter, Date.now()))
}

/** The same from an object that is at hand: the `ERROR` event of a watch holds a `Status` (its `code` wins). */
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
