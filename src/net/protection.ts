import { createTtlLru } from '../cache/index.ts'
import { type Clock, type OnBehalf, OutboundError, type OutboundResponse } from '../core/index.ts'
import {
  type BreakerOptions,
  type BreakerState,
  type CallOutcome,
  CLOSED,
  type Circuit,
  createCircuit,
} from './circuit.ts'
import { TOKEN_REST_SECONDS } from './failure.ts'
import { createRest, restingError } from './rest.ts'
import { createTurns } from './turns.ts'

export interface ProtectionOptions {
  /** False for no breaker at all. */
  readonly breaker: BreakerOptions | false
  /** Calls at a time. */
  readonly maxConcurrent: number
  /** Calls that may wait for their turn. */
  readonly maxQueued: number
  /** Of dates that the service names. */
  readonly clock: Clock
  /** Of everything else: it never jumps. */
  readonly steadyClock: Clock
  /** Called with the state of the service's circuit whenever it changes. */
  readonly onState?: (state: BreakerState) => void
}

/** A call to be protected. */
export interface ProtectedCall {
  readonly onBehalfOf: OnBehalf | undefined
  /** Milliseconds for everything, waiting included. */
  readonly deadlineMs: number
  /** When these are over, by `performance.now()`. */
  readonly endsAtMs: number
  /** Sends it; once more with `isAgain` when it waits in vain at a service that is well again. */
  readonly run: (isAgain: boolean) => Promise<OutboundResponse>
}

/** Runs a call inside the concurrency bound and the circuits of one service. Throws `OutboundError`. */
export type Protect = (call: ProtectedCall) => Promise<OutboundResponse>

/** Of a service's calls at a time, those that one caller may have whoever else waits (decisions §2.10). */
const SHARE = 4
const MOST_REMEMBERED = 10_000
/** Circuits of single callers are forgotten so long after their last trouble. */
const CALLER_MEMORY_MS = 60_000

/** What gateways answer for a service that is not there, and what a service answers that is too busy. */
const UNAVAILABLE: ReadonlySet<number> = new Set([502, 503, 504])

function outcomeOfStatus(status: number): CallOutcome {
  if (UNAVAILABLE.has(status)) return 'unavailable'
  return status >= 500 ? 'server_error' : 'answered'
}

function outcomeOf(result: OutboundResponse | OutboundError): CallOutcome {
  if (!(result instanceof OutboundError)) return outcomeOfStatus(result.status)
  switch (result.kind) {
    case 'too_large':
    case 'malformed':
      return 'answered'
    case 'timeout':
    case 'unreachable':
      return result.isSent ? 'no_answer' : 'no_connection'
    default:
      return 'not_made'
  }
}

/**
 * The concurrency bound and the circuits of one service (decisions §2.10): one of the service, in which each caller is a
 * source of trouble, and one for each known caller that has trouble, in which its tokens are; so that neither a caller's tokens
 * nor a token's repetition keep anybody else away. `OutboundError` overloaded when the turn never comes, breaker_open
 * (with `retryAfterSeconds`) while nothing may be sent.
 */
export function createProtection(options: ProtectionOptions): Protect {
  const { clock, steadyClock, breaker } = options
  const turns = createTurns({ ...options, share: SHARE })
  const resting = createTtlLru<number>({ clock: steadyClock, maxEntries: MOST_REMEMBERED })
  const ofCallers = createTtlLru<Circuit>({ clock: steadyClock, maxEntries: MOST_REMEMBERED })
  const rest = createRest(clock, steadyClock)

  /** Ends the waiting of calls that were sent before the circuit opened. */
  const hanging = new Set<() => void>()

  const recovered = (): void => {
    for (const giveUp of hanging) giveUp()
    hanging.clear()
    resting.clear()
    ofCallers.clear()
  }
  const service = breaker === false ? undefined : createCircuit({ ...breaker, clock: steadyClock, onState })
  function onState(state: BreakerState): void {
    if (state === CLOSED) recovered()
    options.onState?.(state)
  }

  const restToken = (token: string): void => {
    const untilMs = steadyClock.now() + TOKEN_REST_SECONDS * 1000
    resting.set(token, untilMs, untilMs)
  }

  const check = (by: OnBehalf | undefined): void => {
    if (breaker === false) return
    const untilMs = by === undefined ? undefined : resting.peek(by.token)
    if (untilMs !== undefined) throw restingError(untilMs - steadyClock.now())
    rest.check(by)
    if (by !== undefined) ofCallers.peek(by.caller)?.check(by.token)
    service?.check(by?.caller)
  }

  const circuitOf = ({ caller, isUnauthenticated }: OnBehalf): Circuit | undefined => {
    if (breaker === false || isUnauthenticated === true) return undefined
    const circuit = ofCallers.peek(caller) ?? createCircuit({ ...breaker, clock: steadyClock })
    ofCallers.set(caller, circuit, steadyClock.now() + CALLER_MEMORY_MS)
    return circuit
  }

  /**
   * Runs a call. Where the service goes away and is well again meanwhile, its answer would never come or is lost: it is sent
   * anew, so that nobody who waits for it waits for its deadline.
   */
  const untilRecovered = async (run: ProtectedCall['run']): Promise<OutboundResponse> => {
    const { promise: recovery, resolve: giveUp } = Promise.withResolvers<undefined>()
    const end = (): void => giveUp(undefined)
    hanging.add(end)
    try {
      return (await Promise.race([run(false), recovery])) ?? (await run(true))
    } finally {
      hanging.delete(end)
    }
  }

  const send = async ({ onBehalfOf: by, deadlineMs, endsAtMs, run }: ProtectedCall): Promise<OutboundResponse> => {
    check(by)
    const isProbe = service?.isClosed === false
    // Neither throws now, so that no probe is begun without an end.
    const ends = [service?.begin(by?.caller, by?.token), by && circuitOf(by)?.begin(by.token)]
    const hasTime = endsAtMs - performance.now() > deadlineMs / 2
    let outcome: CallOutcome = 'not_made'
    try {
      const response = await (isProbe ? run(false) : untilRecovered(run))
      outcome = outcomeOf(response)
      rest.note(response, by)
      return response
    } catch (error) {
      // A call that waited long for its turn may run out of time although the service is well.
      if (error instanceof OutboundError && (hasTime || error.kind !== 'timeout')) outcome = outcomeOf(error)
      throw error
    } finally {
      if (by !== undefined && (outcome === 'server_error' || outcome === 'unavailable')) restToken(by.token)
      for (const end of ends) end?.(outcome)
    }
  }

  return async (call) => {
    // Before the queue as well, so that an open circuit answers at once.
    check(call.onBehalfOf)
    const place = turns.take(call.onBehalfOf)
    const timer = setTimeout(() => place.leave(), Math.max(0, call.endsAtMs - performance.now()))
    try {
      await place.turn
    } finally {
      clearTimeout(timer)
    }
    try {
      return await send(call)
    } finally {
      place.leave()
    }
  }
}
