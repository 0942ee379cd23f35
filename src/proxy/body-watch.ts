import { Failure, type Clock, type ReachedLimit } from '../core/index.ts'
import type { IntrusiveSet } from '../listen/index.ts'
import { BodyBudget, StreamBudget } from './body-budget.ts'
import type { InboundRequest } from './inbound-request.ts'
import type { BodyDeadlines } from './options.ts'

/** Looks after bodies that arrive too slowly, with one timer for all requests instead of one for each. */
export interface BodyWatch {
  /** Room for those that are kept. */
  readonly budget: BodyBudget
  /** Room for those that are streamed. */
  readonly streams: StreamBudget
  /** `onLate` is called once when a body that is kept is not complete in time, until `inbound.onBodyLate` is cleared. */
  kept(inbound: InboundRequest, onLate: (limit: ReachedLimit) => void): void
  /** The same for a body of unknown length, which is waited for only a moment before it is streamed; gives what cancels it. */
  unannounced(onLate: () => void): () => void
  /**
   * The connection ends with 408 when nothing arrives for too long although somebody wants to read; while nobody does, as until
   * its exchange begins, the body has a part of the room for streamed ones.
   */
  streamed(inbound: InboundRequest): void
  close(): void
}

/** How often the timer looks, in milliseconds; a deadline is kept to about this. */
const SWEEP_MS = 1000

/** Watches the bodies of the requests in `active`; so much may be kept of all together, and be on its way. */
export function createBodyWatch(
  active: IntrusiveSet<InboundRequest>,
  clock: Clock,
  {
    keptBytes,
    streamedBytes,
    ...deadlines
  }: BodyDeadlines & { readonly keptBytes: number; readonly streamedBytes: number },
): BodyWatch {
  const look = (inbound: InboundRequest, now: number): void => {
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
      // The very function that was handed in: one more around it made a third of all young objects outlive their requests.
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

/** Something arrived since the last look, or what arrived still waits for a backend that does not read. */
function isMoving(inbound: InboundRequest): boolean {
  const { bytesRead } = inbound.socket
  if (bytesRead === inbound.streamedBytes && !inbound.isBodyStalled) return false
  inbound.streamedBytes = bytesRead
  return true
}
