import { createTtlLru } from '../cache/index.ts'
import {
  type Clock,
  type MonotonicClock,
  type MonotonicMs,
  monotonicNow,
  type OnBehalf,
  OutboundError,
  type OutboundResponse,
} from '../core/index.ts'
import {
  type BreakerOptions,
  type BreakerState,
  type CallOutcome,
  CLOSED,
  type Circuit,
  createCircuit,
} from './circuit.ts'
import { TOKEN_PAUSE_SECONDS } from './failure.ts'
import { createCoolDown, coolDownError } from './cool-down.ts'
import { createFairQueue } from './fair-queue.ts'

export interface ProtectionOptions {
  /** False for no breaker. */
  readonly breaker: BreakerOptions | false
  /** Concurrent calls. */
  readonly maxConcurrent: number
  /** Queued calls. */
  readonly maxQueued: number
  readonly clock: Clock
  readonly monotonicClock: MonotonicClock
  /** Called with each new state of the circuit. */
  readonly onState?: (state: BreakerState) => void
}

/** A call to be protected. */
export interface ProtectedCall {
  readonly onBehalfOf: OnBehalf | undefined
  /** Milliseconds in total, with queueing. */
  readonly deadlineMs: number
  readonly endsAtMs: MonotonicMs
  /** Sends the call; `isAgain` if the first attempt hangs while the service has recovered. */
  readonly run: (isAgain: boolean) => Promise<OutboundResponse>
}

/** Runs a call within the concurrency limit and circuits of a service. Throws `OutboundError`. */
export type Protect = (call: ProtectedCall) => Promise<OutboundResponse>

/** A caller's guaranteed share of the concurrent calls (decisions §2.10). */
const SHARE = 4
const MAX_ENTRIES = 10_000
/** Time to forget a caller's circuit after its last failure. */
const CALLER_MEMORY_MS = 60_000

/** Statuses of a gateway without backend, and of an overloaded service. */
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
 * Concurrency limit and circuits of a service (decisions §2.10). One circuit is for the service, with callers as
 * sources; failing known callers have their own, with tokens as sources. So neither a caller's tokens nor a repeated
 * token block others. Throws `OutboundError` overloaded without a slot, and breaker_open (with `retryAfterSeconds`)
 * while calls are blocked.
 */
export function createProtection(options: ProtectionOptions): Protect {
  const { clock, monotonicClock, breaker } = options
  const turns = createFairQueue({ ...options, share: SHARE })
  const pausedTokens = createTtlLru<number>({ clock: monotonicClock, maxEntries: MAX_ENTRIES })
  const ofCallers = createTtlLru<Circuit>({ clock: monotonicClock, maxEntries: MAX_ENTRIES })
  const coolDown = createCoolDown(clock, monotonicClock)

  /** Cancels calls sent before the circuit opened. */
  const hanging = new Set<() => void>()

  const recovered = (): void => {
    for (const giveUp of hanging) giveUp()
    hanging.clear()
    pausedTokens.clear()
    ofCallers.clear()
  }
  const service = breaker === false ? undefined : createCircuit({ ...breaker, clock: monotonicClock, onState })
  function onState(state: BreakerState): void {
    if (state === CLOSED) recovered()
    options.onState?.(state)
  }

  const pauseToken = (token: string): void => {
    const untilMs = monotonicClock.now() + TOKEN_PAUSE_SECONDS * 1000
    pausedTokens.set(token, untilMs, untilMs)
  }

  const check = (by: OnBehalf | undefined): void => {
    if (breaker === false) return
    const untilMs = by === undefined ? undefined : pausedTokens.peek(by.token)
    if (untilMs !== undefined) throw coolDownError(untilMs - monotonicClock.now())
    coolDown.check(by)
    if (by !== undefined) ofCallers.peek(by.caller)?.check(by.token)
    service?.check(by?.caller)
  }

  const circuitOf = ({ caller, isUnauthenticated }: OnBehalf): Circuit | undefined => {
    if (breaker === false || isUnauthenticated === true) return undefined
    const circuit = ofCallers.peek(caller) ?? createCircuit({ ...breaker, clock: monotonicClock })
    ofCallers.set(caller, circuit, monotonicClock.now() + CALLER_MEMORY_MS)
    return circuit
  }

  /** Runs a call, and sends it again if the service recovers meanwhile: the first response is probably lost. */
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
    // Neither throws now, so that every probe is ended.
    const ends = [service?.begin(by?.caller, by?.token), by && circuitOf(by)?.begin(by.token)]
    const hasTime = endsAtMs - monotonicNow() > deadlineMs / 2
    let outcome: CallOutcome = 'not_made'
    try {
      const response = await (isProbe ? run(false) : untilRecovered(run))
      outcome = outcomeOf(response)
      coolDown.note(response, by)
      return response
    } catch (error) {
      // A call that was queued for long may time out with a healthy service.
      if (error instanceof OutboundError && (hasTime || error.kind !== 'timeout')) outcome = outcomeOf(error)
      throw error
    } finally {
      if (by !== undefined && (outcome === 'server_error' || outcome === 'unavailable')) pauseToken(by.token)
      for (const end of ends) end?.(outcome)
    }
  }

  return async (call) => {
    // Checked before queueing, so that an open circuit rejects at once.
    check(call.onBehalfOf)
    const place = turns.take(call.onBehalfOf)
    const timer = setTimeout(() => place.leave(), Math.max(0, call.endsAtMs - monotonicNow()))
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
