import { FAILURES, type Failure, type FailureCode } from '../core/index.ts'

const MAX_MARGIN_MS = 30_000
const MARGIN_SHARE = 0.1
const REFRESH_SHARE = 0.8
const REFRESH_JITTER = 0.05
const DENIED_PAUSE_MS = 10_000
const MIN_PAUSE_MS = 1_000
const MAX_PAUSE_MS = 30_000
/** A service that is away is asked again this soon: two seconds after it is well everybody is served (decisions §4). */
const MAX_AWAY_PAUSE_MS = 2_000
/** What is said of a token whenever it is shown. */
const SAME_AGAIN: ReadonlySet<FailureCode> = new Set(['invalid_token', 'insufficient_user_authentication'])

/**
 * When a credential that was obtained at `nowMs` and ends at `endMs` stops being given out: min(30 s, 10 % of its
 * lifetime) early, so that it is still valid when it arrives at the backend (decisions §4).
 */
export function hardEndMs(endMs: number, nowMs: number): number {
  return endMs - Math.min(MAX_MARGIN_MS, MARGIN_SHARE * (endMs - nowMs))
}

/**
 * When a request starts a refresh in the background: after 80 % of the lifetime, ± 5 % so that credentials obtained
 * together are not refreshed together. `random` is in [0, 1). Always before the hard end.
 */
export function refreshAtMs(endMs: number, nowMs: number, random: number): number {
  return nowMs + (REFRESH_SHARE + REFRESH_JITTER * (2 * random - 1)) * (endMs - nowMs)
}

/**
 * For how long nobody asks again after a failure, in milliseconds: 10 s after a refusal; what the server asked for, 1 to
 * 30 s, after an outage, doubling with each failure in a row up to 2 s, or to 30 s where it throttles. Undefined where the
 * next request may ask at once: the caller's own token was the reason and the next one may bring a better token, or a
 * secret is missing. `isKeyedByToken` says that the next one brings the same: then it is refused for 10 s as well, unless it
 * has merely expired. A failure that says itself for how long it is refused is believed.
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

/** Milliseconds until a failed background refresh is tried again while the old credential still serves. */
export function refreshPauseMs(failure: Failure, failuresInARow: number): number {
  return pauseMs(failure, failuresInARow, true) ?? DENIED_PAUSE_MS
}
