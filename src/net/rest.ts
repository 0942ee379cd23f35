import { createTtlLru } from '../cache/index.ts'
import { type Clock, type OnBehalf, OutboundError, type OutboundResponse } from '../core/index.ts'
import { parseRetryAfter } from '../http/index.ts'
import { createRatio } from './ratio.ts'

/** A service that asks for rest gets at most so much of it (decisions §4). */
const LONGEST_REST_MS = 30_000
/** Of a caller whom a service throttles without saying for how long. */
const SHORT_REST_MS = 1_000
const MOST_CALLERS = 10_000

/** The proxy's own client is a caller of its own; names of callers are JSON, so this is none of them. */
const OWN: OnBehalf = { caller: 'own', token: '' }

/** "Not now", with what is left of the pause. */
export const restingError = (leftMs: number): OutboundError =>
  new OutboundError('breaker_open', { retryAfterSeconds: Math.max(1, Math.ceil(leftMs / 1000)) })

/** The rest that a service asks for. `by` undefined: a call with the proxy's own client. */
export interface Rest {
  /** Throws `OutboundError` breaker_open while the service, or this caller, rests. */
  check(by: OnBehalf | undefined): void
  note(response: OutboundResponse, by: OnBehalf | undefined): void
}

/**
 * Rest that a service asks for (decisions §4). A 429 rests the caller that got it; the service rests when half of at least
 * ten answers in ten seconds are 429, to at least five callers. A 503 with `Retry-After` rests the service as soon as a second
 * caller gets one, because the first caller alone, or its token, may be what is too much. The proxy's own client is one caller: both
 * answers rest that client alone, and its 503 is no second one, as one caller can bring about calls of both.
 */
export function createRest(clock: Clock, steadyClock: Clock): Rest {
  let untilMs = -Infinity
  let first: { readonly caller: string; readonly untilMs: number } | undefined
  const callers = createTtlLru<number>({ clock: steadyClock, maxEntries: MOST_CALLERS })
  const throttled = createRatio({ leastAnswers: 10, leastSources: 5 })

  const restCaller = (endMs: number, caller: string): void => void callers.set(caller, endMs, endMs)
  const restService = (endMs: number): void => void (untilMs = Math.max(untilMs, endMs))

  const unavailable = (endMs: number, caller: string): void => {
    const isShared = first !== undefined && first.untilMs > steadyClock.now() && first.caller !== caller
    if (isShared) restService(endMs)
    else first = { caller, untilMs: endMs }
  }

  return {
    check(by = OWN) {
      const leftMs = Math.max(untilMs, callers.peek(by.caller) ?? -Infinity) - steadyClock.now()
      if (leftMs > 0) throw restingError(leftMs)
    },
    note({ status, headers }, by) {
      const { caller, isUnauthenticated } = by ?? OWN
      const nowMs = steadyClock.now()
      const isMany = throttled.note({ atMs: nowMs, isTrouble: status === 429, source: caller })
      if (status !== 429 && status !== 503) return
      const seconds = parseRetryAfter(headers['retry-after'], clock.now())
      const endMs = nowMs + (seconds === undefined ? SHORT_REST_MS : Math.min(LONGEST_REST_MS, seconds * 1000))
      if (status === 429) {
        // Many callers may share the address of an unknown one; without a time, whoever fetches for the proxy pauses anyway.
        if (isUnauthenticated !== true && (by !== undefined || seconds !== undefined)) restCaller(endMs, caller)
        if (!isMany) return
        restService(endMs)
        throttled.clear()
      } else if (seconds !== undefined) {
        if (by === undefined) restCaller(endMs, caller)
        else unavailable(endMs, caller)
      }
    },
  }
}
