import {
  bulkhead,
  BulkheadRejectedError,
  CircuitState,
  circuitBreaker,
  ConsecutiveBreaker,
  handleWhen,
} from 'cockatiel'
import { type Clock, OutboundError, type OutboundResponse } from '../core/index.ts'

/** When the circuit opens and how it closes again. */
export interface BreakerOptions {
  /** Consecutive failures that open it. Default 5. */
  readonly failures?: number
  /** Milliseconds until the first probe; doubles with every failed probe. Default 1000. */
  readonly firstPauseMs?: number
  /** Longest pause between probes in milliseconds. Default 10,000. */
  readonly longestPauseMs?: number
}

export interface ProtectionOptions {
  /** False for no breaker at all. */
  readonly breaker: BreakerOptions | false
  /** Exchanges at a time. */
  readonly maxConcurrent: number
  /** Exchanges that may wait for their turn; one more is refused. */
  readonly maxQueued: number
  readonly clock: Clock
  /** Called with the circuit's new state whenever it changes. */
  readonly onState?: (state: BreakerState) => void
}

/** Runs an exchange inside the concurrency bound and the circuit breaker of one service. */
export type Protect = (run: () => Promise<OutboundResponse>) => Promise<OutboundResponse>

/** Values of the gauge extauth_breaker_state. */
export type BreakerState = 0 | 1 | 2
export const CLOSED = 0
const OPEN = 1
const HALF_OPEN = 2

/** Only timeouts, connections that fail or break, and 5xx say that a service is unwell; a refusal or 429 does not. */
const countsAsFailure = (error: unknown): boolean =>
  error instanceof OutboundError && (error.kind === 'timeout' || error.kind === 'unreachable')

type Breaker = Protect & { refuseIfOpen(): void }

const createBreaker = (options: ProtectionOptions, settings: BreakerOptions): Breaker => {
  const firstPauseMs = settings.firstPauseMs ?? 1000
  const longestPauseMs = Math.max(firstPauseMs, settings.longestPauseMs ?? 10_000)
  let pauseMs = firstPauseMs
  let openedAtMs = 0
  const policy = circuitBreaker(
    handleWhen(countsAsFailure).orWhenResult(
      (result) => typeof result === 'object' && result !== null && 'status' in result && Number(result.status) >= 500,
    ),
    {
      breaker: new ConsecutiveBreaker(settings.failures ?? 5),
      // The pause is ours, by the clock that was passed in (`refuseIfOpen`); cockatiel reads Date.now().
      halfOpenAfter: 0,
    },
  )
  let isProbing = false
  policy.onStateChange((state) => {
    if (state === CircuitState.Open) {
      pauseMs = isProbing ? Math.min(longestPauseMs, pauseMs * 2) : firstPauseMs
      openedAtMs = options.clock.now()
    }
    isProbing = state === CircuitState.HalfOpen
    options.onState?.(state === CircuitState.Open ? OPEN : isProbing ? HALF_OPEN : CLOSED)
  })
  const refuse = (leftMs: number): never => {
    throw new OutboundError('breaker_open', { retryAfterSeconds: Math.max(1, Math.ceil(leftMs / 1000)) })
  }
  // cockatiel would let the others wait for the probe's result; here they are told to come back.
  const refuseIfOpen = (): void => {
    if (policy.state === CircuitState.HalfOpen) refuse(0)
    const leftMs = openedAtMs + pauseMs - options.clock.now()
    if (policy.state === CircuitState.Open && leftMs > 0) refuse(leftMs)
  }
  const protect = async (run: () => Promise<OutboundResponse>): Promise<OutboundResponse> => {
    refuseIfOpen()
    return policy.execute(run)
  }
  return Object.assign(protect, { refuseIfOpen })
}

/**
 * The concurrency bound and the circuit breaker of one service. Throws `OutboundError` overloaded when the queue is full
 * and breaker_open (with `retryAfterSeconds`) while the circuit is open; one probe at a time goes through after a pause.
 */
export const createProtection = (options: ProtectionOptions): Protect => {
  const bound = bulkhead(options.maxConcurrent, options.maxQueued)
  const breaker = options.breaker === false ? undefined : createBreaker(options, options.breaker)
  return async (run) => {
    // Before the queue as well, so that an open circuit answers at once.
    breaker?.refuseIfOpen()
    try {
      return await bound.execute(() => (breaker === undefined ? run() : breaker(run)))
    } catch (error) {
      if (error instanceof BulkheadRejectedError) throw new OutboundError('overloaded', { cause: error })
      throw error
    }
  }
}
