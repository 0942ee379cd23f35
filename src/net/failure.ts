import { Failure, type FailureCode, OutboundError, type OutboundResponse } from '../core/index.ts'
import { parseRetryAfter } from '../http/index.ts'

/** What the error table calls the troubles of one kind of service (decisions §5). */
export interface ServiceFailures {
  /** In our words, for details in the log: `token endpoint`, `STS`. */
  readonly what: string
  /** It can't be asked, or says "not now". */
  readonly unavailable: FailureCode
  /** It says that it is asked too often. Default: as `unavailable`. */
  readonly throttled?: FailureCode
  /** It gives an answer of no use. */
  readonly unusable: FailureCode
  /** It is asked about tokens, and not again about one that got a 5xx for `TOKEN_REST_SECONDS`. Default false. */
  readonly isAboutTokens?: boolean
}

/** For so long a service is not asked again about a token that got a 5xx (decisions §2.10). */
export const TOKEN_REST_SECONDS = 5

/** Seconds after which to come back to a service that did not say: to one that can't be asked, and to one that is too busy. */
const DEFAULT_RETRY_AFTER_SECONDS = 1
const BUSY_RETRY_AFTER_SECONDS = 5

/**
 * The failure that an error of an `Outbound` stands for: `overloaded` at its concurrency bound, `unusable` for an answer
 * over the size bound or of no HTTP, else `unavailable`, with the time to come back. A `Failure` passes as it is; anything else is
 * `internal_error`.
 */
export function outboundFailure(error: unknown, service: ServiceFailures): Failure {
  if (error instanceof Failure) return error
  if (!(error instanceof OutboundError)) return new Failure('internal_error', { cause: error })
  const { kind } = error
  const options = { detail: `${service.what}: ${kind}`, cause: error }
  if (kind === 'too_large' || kind === 'malformed') return new Failure(service.unusable, options)
  const retryAfterSeconds = error.retryAfterSeconds ?? DEFAULT_RETRY_AFTER_SECONDS
  return new Failure(kind === 'overloaded' ? 'overloaded' : service.unavailable, { ...options, retryAfterSeconds })
}

/** The failure that an answer with 408, 429 or 5xx stands for, with its `Retry-After`; undefined for any other answer. */
export function busyFailure(
  response: Pick<OutboundResponse, 'status' | 'headers'>,
  service: ServiceFailures,
  nowMs: number,
): Failure | undefined {
  const { status } = response
  if (status !== 408 && status !== 429 && status < 500) return undefined
  const code = status === 429 ? (service.throttled ?? service.unavailable) : service.unavailable
  return new Failure(code, {
    detail: `${service.what} answered ${status}`,
    retryAfterSeconds: retryAfterSeconds(response, service, nowMs),
  })
}

/** Whole seconds to wait: what an answer's `Retry-After` says, 1 to 3600, or what is usual after its status. */
export function retryAfterSeconds(
  { status, headers }: Pick<OutboundResponse, 'status' | 'headers'>,
  service: ServiceFailures,
  nowMs: number,
): number {
  const asked = parseRetryAfter(headers['retry-after'], nowMs)
  if (status >= 500 && service.isAboutTokens === true) return Math.max(TOKEN_REST_SECONDS, asked ?? 0)
  return asked ?? (status === 429 ? BUSY_RETRY_AFTER_SECONDS : DEFAULT_RETRY_AFTER_SECONDS)
}
