import { type EpochMs, type Failure, type FailureCode, FAILURES } from '../core/index.ts'

const MAX_MARGIN_MS = 30_000
const MARGIN_SHARE = 0.1
const REFRESH_SHARE = 0.8
const REFRESH_JITTER = 0.05
const DENIED_PAUSE_MS = 10_000
const MIN_PAUSE_MS = 1_000
const MAX_PAUSE_MS = 30_000
/** Maximum pause for an unavailable service: all callers are served two seconds after its recovery (decisions §4). */
const MAX_AWAY_PAUSE_MS = 2_000
/** Failures that a token causes every time. */
const SAME_AGAIN: ReadonlySet<FailureCode> = new Set(['invalid_token', 'insufficient_user_authentication'])

/**
 * Returns when a credential obtained at `nowMs` with expiry `endMs` is no longer used: min(30 s, 10 % of its lifetime)
 * earlier, so that it is valid on arrival at the backend (decisions §4).
 */
export function hardEndMs(endMs: EpochMs, nowMs: EpochMs): number {
  return endMs - Math.min(MAX_MARGIN_MS, MARGIN_SHARE * (endMs - nowMs))
}

/**
 * Returns when a request starts a background refresh: after 80 % of the lifetime, ± 5 % of jitter. `random` is in [0,
 * 1). Always before the hard end.
 */
export function refreshAtMs(endMs: EpochMs, nowMs: EpochMs, random: number): number {
  return nowMs + (REFRESH_SHARE + REFRESH_JITTER * (2 * random - 1)) * (endMs - nowMs)
}

/**
 * Returns the lifetime of a negative entry in milliseconds: 10 s after a rejection; after an outage, the server's
 * Retry-After, 1 to 30 s, or a pause that doubles up to 2 s (up to 30 s if throttled). Undefined if the next request may
 * fetch at once: a different token of the caller may succeed, or a secret is missing. With `isKeyedByToken` the token is the
 * same, so it is rejected for 10 s as well, unless it has expired. `refusedForMs` of the failure takes precedence.
 */
export function pauseMs(failure: Failure, failuresInARow: number, isKeyedByToken = false): number | undefined {
  if (failure.refusedForMs !== undefined) return failure.refusedForMs
  switch (FAILURES[failure.code].fault) {
    case 'caller_token':
      return isKeyedByToken && SAME_AGAIN.has(failure.code) ? DENIED_PAUSE_MS : undefined
    case 'caller_rights':
      return DENIED_PAUSE_MS
    case 'configuration':
      return failure.code === 'secret_unavailable' ? undefined : DENIED_PAUSE_MS
    case 'identity_provider':
      break
    case 'proxy':
      if (failure.code !== 'overloaded') return undefined
      break
    default:
      return undefined
  }
  const asked = (failure.retryAfterSeconds ?? 0) * 1_000
  const most = failure.code === 'sts_throttled' ? MAX_PAUSE_MS : MAX_AWAY_PAUSE_MS
  const grown = Math.min(most, MIN_PAUSE_MS * 2 ** Math.min(failuresInARow - 1, 10))
  return Math.min(MAX_PAUSE_MS, Math.max(MIN_PAUSE_MS, asked, grown))
}

/** Milliseconds until a failed background refresh is retried, while the old credential is used. */
export function refreshPauseMs(failure: Failure, failuresInARow: number): number {
  return pauseMs(failure, failuresInARow, true) ?? DENIED_PAUSE_MS
}
