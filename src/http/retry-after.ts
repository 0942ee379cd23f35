import type { EpochMs, Failure } from '../core/index.ts'
import { parseHttpDate } from './http-date.ts'

const LONGEST_SECONDS = 3600
/** Default for a 503. */
const DEFAULT_SECONDS = 5

/**
 * Parses a received `Retry-After` (RFC 9110 §10.2.3: seconds or a date) into whole seconds from 1 to 3600; undefined
 * without one or if it is invalid.
 */
export function parseRetryAfter(value: string | undefined, nowMs: EpochMs): number | undefined {
  if (value === undefined) return undefined
  // A date begins with the name of the day; `Date.parse` accepts almost anything.
  const seconds = /^\d{1,9}$/.test(value)
    ? Number(value)
    : /^[A-Z]/i.test(value)
      ? (parseHttpDate(value) - nowMs) / 1000
      : Number.NaN
  return Number.isFinite(seconds) ? Math.min(LONGEST_SECONDS, Math.max(1, Math.ceil(seconds))) : undefined
}

/** The `Retry-After` of a failure: its known value; 5 s for any other 503. */
export function retryAfterFor(failure: Failure): string | undefined {
  const seconds = failure.retryAfterSeconds ?? (failure.status === 503 ? DEFAULT_SECONDS : undefined)
  return seconds === undefined ? undefined : String(seconds)
}
