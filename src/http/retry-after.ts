import type { Failure } from '../core/index.ts'
import { parseHttpDate } from './http-date.ts'

const LONGEST_SECONDS = 3600
/** For a 503 that nobody gave a time for. */
const DEFAULT_SECONDS = 5

/**
 * Seconds of a `Retry-After` that was received (RFC 9110 §10.2.3: seconds or a date), whole, 1 to 3600; undefined when
 * there is none or it is neither.
 */
export function parseRetryAfter(value: string | undefined, nowMs: number): number | undefined {
  if (value === undefined) return undefined
  // A date begins with the day's name; `Date.parse` would take almost anything for one.
  const seconds = /^\d{1,9}$/.test(value)
    ? Number(value)
    : /^[A-Z]/i.test(value)
      ? (parseHttpDate(value) - nowMs) / 1000
      : Number.NaN
  return Number.isFinite(seconds) ? Math.min(LONGEST_SECONDS, Math.max(1, Math.ceil(seconds))) : undefined
}

/** The `Retry-After` that a failure is answered with: what is known of it, whatever its row; 5 s for other 503. */
export function retryAfterFor(failure: Failure): string | undefined {
  const seconds = failure.retryAfterSeconds ?? (failure.status === 503 ? DEFAULT_SECONDS : undefined)
  return seconds === undefined ? undefined : String(seconds)
}
