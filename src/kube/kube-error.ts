import { OutboundError } from '../core/index.ts'

/** The API server's answer to a request that it refused (its `Status` object), or no answer at all (status 0). */
export class KubeError extends Error {
  /** HTTP status; 0 when there was no usable answer. */
  readonly status: number
  /** Machine-readable reason, such as `Conflict`, `NotFound`, `Expired`; empty when there is none. */
  readonly reason: string
  /** Whole seconds after which the server wants to be asked again. */
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

/** True when asking again later may help: no answer, 408, 429, 5xx. */
export const isTransient = (error: unknown): boolean =>
  error instanceof OutboundError ||
  (error instanceof KubeError &&
    (error.status === 0 || error.status === 408 || error.status === 429 || error.status >= 500))

/** Longest text of the server that is kept: it names objects and rules, never secrets' values. */
const MAX_MESSAGE = 2000

/** Reads the `Status` of an answer that is no success; anything else becomes its HTTP status. */
export function kubeErrorOf(status: number, body: Buffer, retryAfter?: string): KubeError {
  const seconds = retryAfter !== undefined && /^\d{1,5}$/.test(retryAfter) ? Number(retryAfter) : undefined
  return kubeErrorFrom(status, parsed(body), seconds)
}

/** The same from an object that is at hand: the `ERROR` event of a watch holds a `Status` (its `code` wins). */
export function kubeErrorFrom(status: number, answer: unknown, retryAfterSeconds?: number): KubeError {
  const { code, reason, message, details } = (typeof answer === 'object' && answer !== null ? answer : {}) as {
    code?: unknown
    reason?: unknown
    message?: unknown
    details?: { retryAfterSeconds?: unknown }
  }
  const wanted = details?.retryAfterSeconds
  return new KubeError(typeof code === 'number' ? code : status, typeof reason === 'string' ? reason : '', {
    ...(typeof message === 'string' ? { message: message.slice(0, MAX_MESSAGE) } : {}),
    retryAfterSeconds: retryAfterSeconds ?? (typeof wanted === 'number' ? wanted : undefined),
  })
}

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'))
  } catch {
    return undefined
  }
}
