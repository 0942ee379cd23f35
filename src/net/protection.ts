import { createTtlLru } from '../cache/index.ts'
import { type Clock, type OnBehalf, OutboundError, type OutboundResponse } from '../core/index.ts'
import { parseRetryAfter } from '../http/index.ts'
import {
  type BreakerOptions,
  type BreakerState,
  type CallOutcome,
  CLOSED,
  type Circuit,
  createCircuit,
} from './circuit.ts'
import { TOKEN_REST_SECONDS } from './failure.ts'
import { createTurns } from './turns.ts'

export interface ProtectionOptions {
  /** False for no breaker at all. */
  readonly breaker: BreakerOptions | false
  /** Calls at a time. */
  readonly maxConcurrent: number
  /** Calls that may wait for their turn. */
  readonly maxQueued: number
  readonly clock: Clock
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
  readonly run: () => Promise<OutboundResponse>
}

/** Runs a call inside the concurrency bound and the circuits of one service. Throws `OutboundError`. */
export type Protect = (call: ProtectedCall) => Promise<OutboundResponse>

/** Of a service's calls at a time, those that one caller may have whoever else waits (decisions §2.10). */
const SHARE = 4
/** A service that asks for rest gets at most so much of it (decisions §4). */
const LONGEST_REST_MS = 30_000
const MOST_REMEMBERED = 10_000
/** Circuits of single callers are forgotten so long after their last trouble. */
const CALLER_MEMORY_MS = 60_000

const refusal = (leftMs: number): OutboundError =>
  new OutboundError('breaker_open', { retryAfterSeconds: Math.max(1, Math.ceil(leftMs / 1000)) })

function outcomeOf(result: OutboundResponse | OutboundError): CallOutcome {
  if (!(result instanceof OutboundError)) return result.status >= 500 ? 'server_error' : 'answered'
  switch (result.kind) {
    case 'too_large':
      return 'answered'
    case 'timeout':
    case 'unreachable':
      return result.isSent ? 'no_answer' : 'no_connection'
    default:
      return 'not_made'
  }
}

/**
 * Rest that a service asks for by `Retry-After` with a 429 or 503: it holds for everybody (decisions §4) as soon as a
 * second caller is told so, because the first one alone, or its token, may be what is too much.
 */
function createRest(clock: Clock) {
  let untilMs = 0
  let first: { readonly caller: string | undefined; readonly untilMs: number } | undefined
  return {
    check(): void {
      const leftMs = untilMs - clock.now()
      if (leftMs > 0) throw refusal(leftMs)
    },
    note({ status, headers }: OutboundResponse, caller: string | undefined): void {
      if (status !== 429 && status !== 503) return
      const seconds = parseRetryAfter(headers['retry-after'], clock.now())
      if (seconds === undefined) return
      const endMs = clock.now() + Math.min(LONGEST_REST_MS, seconds * 1000)
      const isShared = first !== undefined && first.untilMs > clock.now() && first.caller !== caller
      if (isShared || caller === undefined) untilMs = Math.max(untilMs, endMs)
      else first = { caller, untilMs: endMs }
    },
  }
}

/**
 * The concurrency bound and the circuits of one service (decisions §2.10): one of the service, in which each caller is a
 * source of trouble, and one for each known caller that has trouble, in which its tokens are; so that neither a caller's tokens
 * nor a token's repetition keep anybody else away. `OutboundError` overloaded when the turn never comes, breaker_open
 * (with `retryAfterSeconds`) while nothing may be sent.
 */
export function createProtection(options: ProtectionOptions): Protect {
  const { clock, breaker } = options
  const turns = createTurns({ ...options, share: SHARE })
  const resting = createTtlLru<number>({ clock, maxEntries: MOST_REMEMBERED })
  const ofCallers = createTtlLru<Circuit>({ clock, maxEntries: MOST_REMEMBERED })
  const rest = createRest(clock)

  const recovered = (): void => {
    resting.clear()
    ofCallers.clear()
  }
  const service = breaker === false ? undefined : createCircuit({ ...breaker, clock, onState })
  function onState(state: BreakerState): void {
    if (state === CLOSED) recovered()
    options.onState?.(state)
  }

  const restToken = (token: string): void => {
    const untilMs = clock.now() + TOKEN_REST_SECONDS * 1000
    resting.set(token, untilMs, untilMs)
  }

  const check = (by: OnBehalf | undefined): void => {
    if (breaker === false) return
    const untilMs = by === undefined ? undefined : resting.peek(by.token)
    if (untilMs !== undefined) throw refusal(untilMs - clock.now())
    rest.check()
    if (by !== undefined) ofCallers.peek(by.caller)?.check(by.token)
    service?.check(by?.caller)
  }

  const circuitOf = ({ caller, isStranger }: OnBehalf): Circuit | undefined => {
    if (breaker === false || isStranger === true) return undefined
    const circuit = ofCallers.peek(caller) ?? createCircuit({ ...breaker, clock })
    ofCallers.set(caller, circuit, clock.now() + CALLER_MEMORY_MS)
    return circuit
  }

  const send = async ({ onBehalfOf: by, deadlineMs, endsAtMs, run }: ProtectedCall): Promise<OutboundResponse> => {
    check(by)
    // Neither throws now, so that no probe is begun without an end.
    const ends = [service?.begin(by?.caller), by && circuitOf(by)?.begin(by.token)]
    const hasTime = endsAtMs - performance.now() > deadlineMs / 2
    let outcome: CallOutcome = 'not_made'
    try {
      const response = await run()
      outcome = outcomeOf(response)
      rest.note(response, by?.caller)
      return response
    } catch (error) {
      // A call that waited long for its turn may run out of time although the service is well.
      if (error instanceof OutboundError && (hasTime || error.kind !== 'timeout')) outcome = outcomeOf(error)
      throw error
    } finally {
      if (by !== undefined && outcome === 'server_error') restToken(by.token)
      for (const end of ends) end?.(outcome)
    }
  }

  return async (call) => {
    // Before the queue as well, so that an open circuit answers at once.
    check(call.onBehalfOf)
    const place = turns.take(call.onBehalfOf)
    const timer = setTimeout(() => place.leave(), call.endsAtMs - performance.now())
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
