import { Failure, type Clock } from '../core/index.ts'
import type { Exchange } from './exchange.ts'
import { refuseConnection } from './refuse-connection.ts'
import type { Deadlines } from './options.ts'

/** Looks after bodies that arrive too slowly, with one timer for all of them instead of one for each. */
export interface BodyWatch {
  /** Calls `onLate` when the body is not complete in time; gives the function that stops watching. */
  kept(onLate: () => void): () => void
  /** Ends the connection with 408 when nothing arrives for too long although somebody wants to read. */
  streamed(exchange: Exchange): void
  /** Looks at all of them now; the timer does it by itself. */
  sweep(): void
  close(): void
}

interface Streamed {
  readonly exchange: Exchange
  bytesRead: number
  sinceMs: number
}

/** How often the timer looks, in milliseconds; a deadline is kept to about this. */
const SWEEP_MS = 1000

export function createBodyWatch(clock: Clock, deadlines: Pick<Deadlines, 'keptBodyMs' | 'bodyIdleMs'>): BodyWatch {
  const kept = new Set<{ readonly untilMs: number; readonly onLate: () => void }>()
  const streams = new Set<Streamed>()

  const sweep = (): void => {
    const now = clock.now()
    for (const entry of kept) if (now >= entry.untilMs) entry.onLate()
    for (const entry of streams) {
      if (isOver(entry.exchange)) streams.delete(entry)
      else if (isMoving(entry, now)) continue
      else if (now - entry.sinceMs >= deadlines.bodyIdleMs) {
        streams.delete(entry)
        refuseConnection(entry.exchange.socket, entry.exchange, new Failure('request_timeout'))
      }
    }
  }
  const timer = setInterval(sweep, SWEEP_MS)
  timer.unref()

  return {
    kept(onLate) {
      const entry = { untilMs: clock.now() + deadlines.keptBodyMs, onLate }
      kept.add(entry)
      return () => kept.delete(entry)
    },
    streamed(exchange) {
      streams.add({ exchange, bytesRead: exchange.socket.bytesRead, sinceMs: clock.now() })
    },
    sweep,
    close: () => clearInterval(timer),
  }
}

const isOver = ({ request, response }: Exchange): boolean => request.complete || request.destroyed || response.destroyed

/** Something arrived since the last look, or what arrived still waits for a backend that does not read. */
function isMoving(entry: Streamed, now: number): boolean {
  const { request, socket } = entry.exchange
  const { bytesRead } = socket
  if (bytesRead === entry.bytesRead && request.readableLength === 0) return false
  entry.bytesRead = bytesRead
  entry.sinceMs = now
  return true
}
