import { createTtlLru } from '../cache/index.ts'
import { type Clock, type OnBehalf, OutboundError, type OutboundResponse } from '../core/index.ts'
import { parseRetryAfter } from '../http/index.ts'
import { createRatio } from './ratio.ts'

/** A service that asks for rest gets at most so much of it (decisions §4). */
const LONGEST_REST_MS = 30_000
/** Of a caller whom a service throttles without saying for how long. */
const SHORT_REST_MS = 1_000
const MOST_CALLERS = 10_000

/** "Not now", with what is left of the pause. */
export const restingError = (leftMs: number): OutboundError =>
  new OutboundError('breaker_open', { retryAfterSeconds: Math.max(1, Math.ceil(leftMs / 1000)) })

/** The rest that a service asks for. */
export interface Rest {
  /** Throws `OutboundError` breaker_open while the service, or this caller, rests. */
  check(by: OnBehalf | undefined): void
  note(response: OutboundResponse, by: OnBehalf | undefined): void
}

/**
 * Rest that a service asks for (decisions §4). A 429 rests the caller who got it; the service rests when half of at least
 * ten answers in ten seconds say so, to at least five callers. A 503 with `Retry-After` rests the service as soon as a second
 * caller is told so, because the first one alone, or its token, may be what is too much.
 */
export function createRest(clock: Clock, steadyClock: Clock): Rest {
  let untilMs = -Infinity
  let first: { readonly caller: string | undefined; readonly untilMs: number } | undefined
  const callers = createTtlLru<number>({ clock: steadyClock, maxEntries: MOST_CALLERS })
  const throttled = createRatio({ leastAnswers: 10, leastSources: 5 })

  const throttle = (endMs: number, by: OnBehalf | undefined, isMany: boolean, isAsked: boolean): void => {
    // Behind the address of a stranger many may stand.
    if (by !== undefined && by.isStranger !== true) callers.set(by.caller, endMs, endMs)
    if (!isMany && (by !== undefined || !isAsked)) return
    untilMs = Math.max(untilMs, endMs)
    throttled.clear()
  }

  const unavailable = (endMs: number, caller: string | undefined): void => {
    const isShared = first !== undefined && first.untilMs > steadyClock.now() && first.caller !== caller
    if (isShared || caller === undefined) untilMs = Math.max(untilMs, endMs)
    else first = { caller, untilMs: endMs }
  }

  return {
    check(by) {
      const ownMs = by === undefined ? -Infinity : (callers.peek(by.caller) ?? -Infinity)
      const leftMs = Math.max(untilMs, ownMs) - steadyClock.now()
      if (leftMs > 0) throw restingError(leftMs)
    },
    note({ status, headers }, by) {
      const nowMs = steadyClock.now()
      // Calls of the proxy itself are of one caller.
      const isMany = by !== undefined && throttled.note({ atMs: nowMs, isTrouble: status === 429, source: by.caller })
      if (status !== 429 && status !== 503) return
      const seconds = parseRetryAfter(headers['retry-after'], clock.now())
      const endMs = nowMs + (seconds === undefined ? SHORT_REST_MS : Math.min(LONGEST_REST_MS, seconds * 1000))
      if (status === 429) throttle(endMs, by, isMany, seconds !== undefined)
      else if (seconds !== undefined) unavailable(endMs, by?.caller)
    },
  }
}
