import { createTtlLru } from '../cache/index.ts'
import { type Clock, type MonotonicClock, type OnBehalf, OutboundError, type OutboundResponse } from '../core/index.ts'
import { parseRetryAfter } from '../http/index.ts'
import { createRatio } from './ratio.ts'

/** Maximum cool-down that a service can request (decisions §4). */
const MAX_COOL_DOWN_MS = 30_000
/** Cool-down of a throttled caller without `Retry-After`. */
const DEFAULT_COOL_DOWN_MS = 1_000
const MOST_CALLERS = 10_000

/** Key of the proxy's own client. Caller keys are JSON, so it is unique. */
const OWN: OnBehalf = { caller: 'own', token: '' }

/** Error with the remaining cool-down. */
export const coolDownError = (leftMs: number): OutboundError =>
  new OutboundError('breaker_open', { retryAfterSeconds: Math.max(1, Math.ceil(leftMs / 1000)) })

/** Cool-down that a service requests. `by` undefined: a call by the proxy's own client. */
export interface CoolDown {
  /** Throws `OutboundError` breaker_open during the cool-down of the service or this caller. */
  check(by: OnBehalf | undefined): void
  note(response: OutboundResponse, by: OnBehalf | undefined): void
}

/**
 * Creates the cool-down (decisions §4). A 429 pauses its caller; half of ten or more responses in ten seconds with
 * 429, for five or more callers, pause the service. A 503 with `Retry-After` pauses the service at the second caller,
 * because a single caller or token may be the cause. The proxy's own client counts as a caller and is paused alone;
 * its 503 is not a second one, since a caller can trigger both.
 */
export function createCoolDown(clock: Clock, monotonicClock: MonotonicClock): CoolDown {
  let untilMs = -Infinity
  let first: { readonly caller: string; readonly untilMs: number } | undefined
  const callers = createTtlLru<number>({ clock: monotonicClock, maxEntries: MOST_CALLERS })
  const throttled = createRatio({ leastAnswers: 10, leastSources: 5 })

  const pauseCaller = (endMs: number, caller: string): void => void callers.set(caller, endMs, endMs)
  const pauseService = (endMs: number): void => void (untilMs = Math.max(untilMs, endMs))

  const unavailable = (endMs: number, caller: string): void => {
    const isShared = first !== undefined && first.untilMs > monotonicClock.now() && first.caller !== caller
    if (isShared) pauseService(endMs)
    else first = { caller, untilMs: endMs }
  }

  return {
    check(by = OWN) {
      const leftMs = Math.max(untilMs, callers.peek(by.caller) ?? -Infinity) - monotonicClock.now()
      if (leftMs > 0) throw coolDownError(leftMs)
    },
    note({ status, headers }, by) {
      const { caller, isUnauthenticated } = by ?? OWN
      const nowMs = monotonicClock.now()
      const isMany = throttled.note({ atMs: nowMs, isTrouble: status === 429, source: caller })
      if (status !== 429 && status !== 503) return
      const seconds = parseRetryAfter(headers['retry-after'], clock.now())
      const endMs = nowMs + (seconds === undefined ? DEFAULT_COOL_DOWN_MS : Math.min(MAX_COOL_DOWN_MS, seconds * 1000))
      if (status === 429) {
        // Unauthenticated callers may share an address. Without a time, fetches by the proxy pause anyway.
        if (isUnauthenticated !== true && (by !== undefined || seconds !== undefined)) pauseCaller(endMs, caller)
        if (!isMany) return
        pauseService(endMs)
        throttled.clear()
      } else if (seconds !== undefined) {
        if (by === undefined) pauseCaller(endMs, caller)
        else unavailable(endMs, caller)
      }
    },
  }
}
