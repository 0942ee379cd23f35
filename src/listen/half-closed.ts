import type { Socket } from 'node:net'
import type { Connection } from './connection.ts'

/** How long a client that has ended its side gets for its answer, in milliseconds. */
export const HALF_CLOSED_MS = 500

/**
 * Who has ended his side may have gone, or has said all and waits for the answer (RFC 9112 §9.6): the bytes are the same. An
 * answer that comes soon is given; after that nobody is taken to be there, and what works for him is let go (ADR 0198).
 */
export function watchHalfClosed<T>(socket: Socket, connection: Connection<T>): void {
  socket.once('end', () => {
    const timer = setTimeout(() => {
      if (!connection.isUpgraded) connection.cut(undefined)
    }, HALF_CLOSED_MS)
    timer.unref()
    socket.once('close', () => clearTimeout(timer))
  })
}
