import { Failure, type MonotonicClock, type MonotonicMs, type ReachedLimit } from '../core/index.ts'
import type { IntrusiveSet } from '../listen/index.ts'
import { BodyBudget, StreamBudget } from './body-budget.ts'
import type { InboundRequest } from './inbound-request.ts'
import type { BodyDeadlines } from './options.ts'

/** Limits the time of slow bodies, with one timer for all requests. */
export interface BodyWatch {
  /** Memory budget of buffered bodies. */
  readonly budget: BodyBudget
  /** Memory budget of streamed bodies. */
  readonly streams: StreamBudget
  /** Calls `onLate` once if a buffered body is not complete in time, until `inbound.onBodyLate` is cleared. */
  kept(inbound: InboundRequest, onLate: (limit: ReachedLimit) => void): void
  /**
   * The same for a body of unknown length, which is buffered only briefly before it is streamed; returns a function
   * that cancels it.
   */
  unannounced(onLate: () => void): () => void
  /**
   * Ends the connection with 408 if no data arrives for too long although the backend reads; while it does not, for
   * example before the exchange begins, the body uses the budget of streamed ones.
   */
  streamed(inbound: InboundRequest): void
  close(): void
}

/** Milliseconds between checks; the precision of deadlines. */
const SWEEP_MS = 1000

/** Watches the bodies of the requests in `active`, with limits for buffered and streamed bytes. */
export function createBodyWatch(
  active: IntrusiveSet<InboundRequest>,
  clock: MonotonicClock,
  {
    keptBytes,
    streamedBytes,
    ...deadlines
  }: BodyDeadlines & { readonly keptBytes: number; readonly streamedBytes: number },
): BodyWatch {
  const look = (inbound: InboundRequest, now: MonotonicMs): void => {
    if (inbound.onBodyLate !== undefined) {
      if (now >= inbound.bodyUntilMs) inbound.onBodyLate({ amount: deadlines.keptBodyMs, unit: 'ms' })
    } else if (inbound.streamedBytes !== undefined && !isOver(inbound)) {
      if (isMoving(inbound)) inbound.bodyUntilMs = now + deadlines.bodyIdleMs
      else if (now >= inbound.bodyUntilMs) {
        inbound.streamedBytes = undefined
        inbound.connection.refuse(
          new Failure('request_timeout', {
            rule: 'body_stopped',
            limit: { amount: deadlines.bodyIdleMs, unit: 'ms' },
          }),
        )
      }
    }
  }
  const timer = setInterval(() => {
    const now = clock.now()
    for (const inbound of active) look(inbound, now)
  }, SWEEP_MS)
  timer.unref()

  const streams = new StreamBudget(streamedBytes)
  return {
    budget: new BodyBudget(keptBytes),
    streams,
    kept(inbound, onLate) {
      inbound.bodyUntilMs = clock.now() + deadlines.keptBodyMs
      // The passed function itself: a wrapper made a third of all young objects outlive their requests.
      inbound.onBodyLate = onLate
    },
    unannounced(onLate) {
      const timer = setTimeout(onLate, deadlines.unannouncedBodyMs)
      return () => clearTimeout(timer)
    },
    streamed(inbound) {
      inbound.bodyUntilMs = clock.now() + deadlines.bodyIdleMs
      inbound.streamedBytes = inbound.socket.bytesRead
      streams.begin(inbound)
      inbound.request.on('pause', () => streams.stall(inbound)).on('resume', () => streams.flow(inbound))
    },
    close: () => clearInterval(timer),
  }
}

const isOver = ({ request, response }: InboundRequest): boolean =>
  request.complete || request.destroyed || response.destroyed

/** Whether data arrived since the last check, or waits for a backend that does not read. */
function isMoving(inbound: InboundRequest): boolean {
  const { bytesRead } = inbound.socket
  if (bytesRead === inbound.streamedBytes && !inbound.isBodyStalled) return false
  inbound.streamedBytes = bytesRead
  return true
}
