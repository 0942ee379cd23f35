import { type MonotonicClock, OutboundError } from '../core/index.ts'
import { createRatio } from './ratio.ts'

/** Result of a call, as a signal of the service's health. */
export type CallOutcome =
  /** Status below 500, or a response above the size limit: the service is healthy. */
  | 'answered'
  /** A 5xx that the request itself may have caused. */
  | 'server_error'
  /** 502, 503, 504: the service is unhealthy, regardless of the request. */
  | 'unavailable'
  /** Sent without a response: timeout or reset. The request itself may be the cause. */
  | 'no_answer'
  /** Not sent: DNS, connect or TLS error. */
  | 'no_connection'
  /** Not attempted, or canceled by the proxy. */
  | 'not_made'

/** Values of the gauge extauth_breaker_state. */
export type BreakerState = 0 | 1 | 2
export const CLOSED = 0
const OPEN = 1
const HALF_OPEN = 2

export interface BreakerOptions {
  /** Consecutive failed calls that open the circuit. Default 5. */
  readonly failures?: number
  /** Milliseconds from opening, or from a failed probe, to the next probe. Default 1000. */
  readonly pauseMs?: number
}

export interface CircuitOptions extends BreakerOptions {
  readonly clock: MonotonicClock
  /** Called with each new state. */
  readonly onState?: (state: BreakerState) => void
}

/** Circuit breaker of a service. `source` is the caller of a call; undefined for the proxy's own calls. */
export interface Circuit {
  /** Whether the next call is an ordinary one, not a probe. */
  readonly isClosed: boolean
  /** Throws `OutboundError` breaker_open with the retry time while the circuit is open. */
  check(source: string | undefined): void
  /**
   * Like `check`, for a call that starts now and may be the probe. The returned function must be called once. `token`
   * is the source of `unavailable`: several callers may share an address (ADR 0380). Default: `source`.
   */
  begin(source: string | undefined, token?: string): (outcome: CallOutcome) => void
}

const DEFAULT_FAILURES = 5
const DEFAULT_PAUSE_MS = 1000
/** The source of the last probe yields to others, so that no caller keeps a circuit open with failing requests. */
const REPEATED_PROBE_SHARE = 1.5
// 5xx open it if at least half of 20 or more responses in 10 s fail, from at least 5 sources (decisions §2.10).
const LEAST_ANSWERS = 20
const LEAST_SOURCES = 5
/**
 * Creates a circuit breaker. It opens after consecutive calls without a response (one source counts once if the
 * request may be the cause), and by the ratio of 5xx. While open, one probe is sent per pause; the first response
 * closes it.
 */
export function createCircuit(options: CircuitOptions): Circuit {
  const { clock, failures = DEFAULT_FAILURES, pauseMs = DEFAULT_PAUSE_MS } = options
  let state: BreakerState = CLOSED
  let inARow = 0
  const silent = new Set<string>()
  const errors = createRatio({ leastAnswers: LEAST_ANSWERS, leastSources: LEAST_SOURCES })
  /** Number of times it closed: results of earlier calls are ignored. */
  let closings = 0
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
      closings += 1
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
      const begun = closings
      // Calls in flight when it opened say nothing about the service afterwards.
      return (outcome) => (state === CLOSED && begun === closings ? note(outcome, source, token) : undefined)
    },
  }
}
