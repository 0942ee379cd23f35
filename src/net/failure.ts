import { type EpochMs, Failure, type FailureCode, OutboundError, type OutboundResponse } from '../core/index.ts'
import { parseRetryAfter } from '../http/index.ts'

/** Failure codes of one kind of service (decisions §5). */
export interface ServiceFailures {
  /** Name for log details: `token endpoint`, `STS`. */
  readonly what: string
  /** Unreachable, or asks to retry later. */
  readonly unavailable: FailureCode
  /** Rate limit exceeded. Default: as `unavailable`. */
  readonly throttled?: FailureCode
  /** Returned an invalid response. */
  readonly unusable: FailureCode
  /** Requests are about tokens: after a 5xx, the same token waits `TOKEN_PAUSE_SECONDS`. Default false. */
  readonly isAboutTokens?: boolean
}

/** Pause for a token after a 5xx (decisions §2.10). */
export const TOKEN_PAUSE_SECONDS = 5

/** Default Retry-After in seconds: for an unreachable service, and for an overloaded one. */
const DEFAULT_RETRY_AFTER_SECONDS = 1
const BUSY_RETRY_AFTER_SECONDS = 5

/**
 * Maps an error of an `Outbound` to a failure: `overloaded` at its concurrency limit, `unusable` for a response that
 * is too large or not HTTP, else `unavailable` with the retry time. Returns a `Failure` unchanged; other errors become
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

/** Failure for a response with 408, 429 or 5xx, with its `Retry-After`; undefined for others. */
export function busyFailure(
  response: Pick<OutboundResponse, 'status' | 'headers'>,
  service: ServiceFailures,
  nowMs: EpochMs,
): Failure | undefined {
  const { status } = response
  if (status !== 408 && status !== 429 && status < 500) return undefined
  const code = status === 429 ? (service.throttled ?? service.unavailable) : service.unavailable
  return new Failure(code, {
    detail: `${service.what} returned ${status}`,
    retryAfterSeconds: retryAfterSeconds(response, service, nowMs),
  })
}

/** Seconds to wait: the response's `Retry-After`, 1 to 3600, or the default for its status. */
export function retryAfterSeconds(
  { status, headers }: Pick<OutboundResponse, 'status' | 'headers'>,
  service: ServiceFailures,
  nowMs: EpochMs,
): number {
  const asked = parseRetryAfter(headers['retry-after'], nowMs)
  if (status >= 500 && service.isAboutTokens === true) return Math.max(TOKEN_PAUSE_SECONDS, asked ?? 0)
  return asked ?? (status === 429 ? BUSY_RETRY_AFTER_SECONDS : DEFAULT_RETRY_AFTER_SECONDS)
}
