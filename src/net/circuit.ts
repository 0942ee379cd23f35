import { type Clock, OutboundError } from '../core/index.ts'
import { createRatio } from './ratio.ts'

/** How a call ended, as far as it tells how the service is. */
export type CallOutcome =
  /** With any status below 500, or with more than we read: the service is well. */
  | 'answered'
  /** 5xx for which the request itself may be the reason. */
  | 'server_error'
  /** 502, 503, 504: the service says that it is not well, whatever was asked. */
  | 'unavailable'
  /** It was sent, and then came nothing: time-out or reset. The request itself may be the reason. */
  | 'no_answer'
  /** It could not be sent: DNS, connect, TLS. */
  | 'no_connection'
  /** It was not even tried, or given up by ourselves. */
  | 'not_made'

/** Values of the gauge extauth_breaker_state. */
export type BreakerState = 0 | 1 | 2
export const CLOSED = 0
const OPEN = 1
const HALF_OPEN = 2

export interface BreakerOptions {
  /** Failed calls in a row that open it. Default 5. */
  readonly failures?: number
  /** Milliseconds from the opening, and from a probe that failed, to the next probe. Default 1000. */
  readonly pauseMs?: number
}

export interface CircuitOptions extends BreakerOptions {
  readonly clock: Clock
  /** Called with the new state whenever it changes. */
  readonly onState?: (state: BreakerState) => void
}

/** Keeps calls away from a service that is not well. `source` says on whose behalf a call is; absent: a call of its own. */
export interface Circuit {
  /** Whether a call that begins now is no probe. */
  readonly isClosed: boolean
  /** Throws `OutboundError` breaker_open, with the time to come back, while the circuit is open. */
  check(source: string | undefined): void
  /**
   * The same, for a call that starts now: it may be the probe. The function it gives must be called once. `token` is the
   * source of `unavailable`: behind one address there may be many callers (ADR 0380). Default: `source`.
   */
  begin(source: string | undefined, token?: string): (outcome: CallOutcome) => void
}

const DEFAULT_FAILURES = 5
const DEFAULT_PAUSE_MS = 1000
/** Whoever sent the last probe comes after others: nobody keeps a circuit open with requests that must fail. */
const REPEATED_PROBE_SHARE = 1.5
// By 5xx it opens when they are at least half of at least 20 answers in 10 s, from at least 5 sources (decisions §2.10).
const LEAST_ANSWERS = 20
const LEAST_SOURCES = 5
/**
 * A circuit opens after so many calls in a row that got no answer, of which those of one source count once where the
 * request itself may be the reason, and on 5xx by ratio. While it is open a probe goes through one pause after the last;
 * the first that is answered closes it.
 */
export function createCircuit(options: CircuitOptions): Circuit {
  const { clock, failures = DEFAULT_FAILURES, pauseMs = DEFAULT_PAUSE_MS } = options
  let state: BreakerState = CLOSED
  let inARow = 0
  const silent = new Set<string>()
  const errors = createRatio({ leastAnswers: LEAST_ANSWERS, leastSources: LEAST_SOURCES })
  /** Of which closing this is: what began before says nothing about now. */
  let era = 0
  let nextProbeAtMs = 0
  let lastProbe: string | undefined
  let probes = 0

  const change = (next: BreakerState): void => {
    if (next === state) return
    state = next
    inARow = 0
    silent.clear()
    errors.clear()
    if (next === CLOSED) {
      lastProbe = undefined
      era += 1
    }
    options.onState?.(next)
  }

  const open = (): void => {
    nextProbeAtMs = clock.now() + pauseMs
    change(OPEN)
  }

  const check = (source: string | undefined): void => {
    if (state === CLOSED) return
    const isRepeated = source !== undefined && source === lastProbe
    const leftMs = nextProbeAtMs + (isRepeated ? pauseMs * (REPEATED_PROBE_SHARE - 1) : 0) - clock.now()
    if (leftMs <= 0) return
    throw new OutboundError('breaker_open', { retryAfterSeconds: Math.max(1, Math.ceil(leftMs / 1000)) })
  }

  const noteAnswer = (isTrouble: boolean, source: string | undefined): void => {
    inARow = 0
    silent.clear()
    if (errors.note({ atMs: clock.now(), isTrouble, source })) open()
  }

  const note = (outcome: CallOutcome, source: string | undefined, token: string | undefined): void => {
    if (outcome === 'not_made') return
    if (outcome === 'unavailable') return noteAnswer(true, token)
    if (outcome === 'answered' || outcome === 'server_error') return noteAnswer(outcome === 'server_error', source)
    if (outcome === 'no_answer' && source !== undefined) {
      if (silent.has(source)) return
      silent.add(source)
    }
    inARow += 1
    if (inARow >= failures) open()
  }

  const probe = (source: string | undefined): ((outcome: CallOutcome) => void) => {
    nextProbeAtMs = clock.now() + pauseMs
    change(HALF_OPEN)
    lastProbe = source
    probes += 1
    return (outcome) => {
      probes -= 1
      if (state === CLOSED) return
      if (outcome === 'answered') change(CLOSED)
      else if (probes === 0) change(OPEN)
    }
  }

  return {
    get isClosed() {
      return state === CLOSED
    },
    check,
    begin(source, token = source) {
      check(source)
      if (state !== CLOSED) return probe(source)
      const begun = era
      // What was under way when it opened says nothing new, and nothing about the service as it is after.
      return (outcome) => (state === CLOSED && begun === era ? note(outcome, source, token) : undefined)
    },
  }
}
