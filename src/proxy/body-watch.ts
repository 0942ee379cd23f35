import { Failure, type Clock } from '../core/index.ts'
import type { IntrusiveSet } from '../listen/index.ts'
import { BodyBudget } from './body-budget.ts'
import type { Exchange } from './exchange.ts'
import type { BodyDeadlines } from './options.ts'

/** Looks after bodies that arrive too slowly, with one timer for all requests instead of one for each. */
export interface BodyWatch {
  /** Room for those that are kept. */
  readonly budget: BodyBudget
  /** `onLate` is called once when a body that is kept is not complete in time, until `exchange.onBodyLate` is cleared. */
  kept(exchange: Exchange, onLate: () => void): void
  /** The same for a body of unknown length, which is waited for only a little before it is streamed. */
  unannounced(exchange: Exchange, onLate: () => void): void
  /** The connection ends with 408 when nothing arrives for too long although somebody wants to read. */
  streamed(exchange: Exchange): void
  close(): void
}

/** How often the timer looks, in milliseconds; a deadline is kept to about this. */
const SWEEP_MS = 1000

/** Watches the bodies of the requests in `active`; `limitBytes` may be kept of all together. */
export function createBodyWatch(
  active: IntrusiveSet<Exchange>,
  clock: Clock,
  { limitBytes, ...deadlines }: BodyDeadlines & { readonly limitBytes: number },
): BodyWatch {
  const look = (exchange: Exchange, now: number): void => {
    if (exchange.onBodyLate !== undefined) {
      if (now >= exchange.bodyUntilMs) exchange.onBodyLate()
    } else if (exchange.streamedBytes !== undefined && !isOver(exchange)) {
      if (isMoving(exchange)) exchange.bodyUntilMs = now + deadlines.bodyIdleMs
      else if (now >= exchange.bodyUntilMs) {
        exchange.streamedBytes = undefined
        exchange.connection.refuse(new Failure('request_timeout'))
      }
    }
  }
  const timer = setInterval(() => {
    const now = clock.now()
    for (const exchange of active) look(exchange, now)
  }, SWEEP_MS)
  timer.unref()

  const wait = (exchange: Exchange, onLate: () => void, ms: number): void => {
    exchange.bodyUntilMs = clock.now() + ms
    exchange.onBodyLate = onLate
  }
  return {
    budget: new BodyBudget(limitBytes),
    kept: (exchange, onLate) => wait(exchange, onLate, deadlines.keptBodyMs),
    unannounced: (exchange, onLate) => wait(exchange, onLate, deadlines.unannouncedBodyMs),
    streamed(exchange) {
      exchange.bodyUntilMs = clock.now() + deadlines.bodyIdleMs
      exchange.streamedBytes = exchange.socket.bytesRead
    },
    close: () => clearInterval(timer),
  }
}

const isOver = ({ request, response }: Exchange): boolean => request.complete || request.destroyed || response.destroyed

/** Something arrived since the last look, or what arrived still waits for a backend that does not read. */
function isMoving(exchange: Exchange): boolean {
  const { bytesRead } = exchange.socket
  if (bytesRead === exchange.streamedBytes && exchange.request.readableLength === 0) return false
  exchange.streamedBytes = bytesRead
  return true
}
