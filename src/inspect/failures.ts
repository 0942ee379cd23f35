import type { Clock, EpochMs } from '../core/index.ts'

const MINUTES = 15
const MINUTE_MS = 60_000
/** Reasons come from the error table, so there are few. */
const MAX_REASONS = 100
const MAX_ROUTES = 1000

/** How a request ended: a status below 400 and no failure, a prompt to connect an account, else by its status. */
export type Outcome = 'ok' | 'not_connected' | '4xx' | '5xx'

/** Requests by outcome and failures by reason, minute by minute. */
export interface FailureSeries {
  /** Start of each minute, oldest first; the last one is in progress. */
  readonly minutes: readonly number[]
  readonly outcomes: Readonly<Record<Outcome, readonly number[]>>
  readonly reasons: Readonly<Record<string, readonly number[]>>
}

/** The last failure of a route. */
export interface LastFailure {
  readonly atMs: EpochMs
  readonly requestId: string
  readonly status: number
  readonly reason: string
}

export interface Failures {
  /** Counts a request that ended. */
  ended(outcome: Outcome): void
  note(route: string, failure: LastFailure): void
  series(): FailureSeries
  last(route: string): LastFailure | undefined
  /** Increases with each failure. */
  readonly count: number
}

/** Counts requests and failures of the last 15 minutes and remembers the last failure of each route. */
export function createFailures(clock: Clock): Failures {
  const byMinute = new Map<number, Map<string, number>>()
  const ended = new Map<number, Record<Outcome, number>>()
  const lastOf = new Map<string, LastFailure>()
  let count = 0
  const forget = (now: number): void => {
    for (const counts of [byMinute, ended])
      for (const minute of counts.keys()) if (minute <= now - MINUTES) counts.delete(minute)
  }
  return {
    ended(outcome) {
      const minute = Math.floor(clock.now() / MINUTE_MS)
      let counts = ended.get(minute)
      if (counts === undefined) {
        forget(minute)
        ended.set(minute, (counts = { ok: 0, not_connected: 0, '4xx': 0, '5xx': 0 }))
      }
      counts[outcome] += 1
    },
    note(route, failure) {
      const minute = Math.floor(clock.now() / MINUTE_MS)
      let reasons = byMinute.get(minute)
      if (reasons === undefined) {
        forget(minute)
        byMinute.set(minute, (reasons = new Map<string, number>()))
      }
      if (reasons.has(failure.reason) || reasons.size < MAX_REASONS)
        reasons.set(failure.reason, (reasons.get(failure.reason) ?? 0) + 1)
      if (lastOf.has(route) || lastOf.size < MAX_ROUTES) lastOf.set(route, failure)
      count++
    },
    series() {
      const now = Math.floor(clock.now() / MINUTE_MS)
      forget(now)
      const minutes = Array.from({ length: MINUTES }, (_, index) => now - MINUTES + 1 + index)
      const countsOf = (outcome: Outcome) => minutes.map((at) => ended.get(at)?.[outcome] ?? 0)
      const names = new Set<string>()
      for (const reasons of byMinute.values()) for (const name of reasons.keys()) names.add(name)
      const figures = [...names].sort().map((name) => [name, minutes.map((at) => byMinute.get(at)?.get(name) ?? 0)])
      return {
        minutes: minutes.map((minute) => minute * MINUTE_MS),
        outcomes: {
          ok: countsOf('ok'),
          not_connected: countsOf('not_connected'),
          '4xx': countsOf('4xx'),
          '5xx': countsOf('5xx'),
        },
        reasons: Object.fromEntries(figures) as FailureSeries['reasons'],
      }
    },
    last: (route) => lastOf.get(route),
    get count() {
      return count
    },
  }
}
