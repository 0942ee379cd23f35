import type { Server } from 'node:http'
import type { Exchange } from './exchange.ts'
import type { Handler } from './handler.ts'
import type { Roster } from './roster.ts'

/** How long streams that were ended may take to get their last bytes out, in milliseconds. */
const LAST_BYTES_MS = 1000

/**
 * Ends a server without cutting anybody short (within `graceMs`): no new connections, 503 on the ones that are open,
 * requests finish; event streams, which never finish by themselves, are ended cleanly when nothing else is left or when
 * the time is over; then what remains is cut.
 */
export async function drainServer(
  server: Server,
  handler: Handler,
  active: Roster<Exchange>,
  graceMs: number,
): Promise<void> {
  const closed = new Promise<void>((resolve) => {
    server.close(() => resolve())
  })
  handler.refuse()
  const onlyStreams = (): boolean => [...active].every((exchange) => exchange.isStreaming)
  await settled(handler, onlyStreams, graceMs)
  for (const exchange of active) exchange.endStream()
  await settled(handler, () => active.size === 0, LAST_BYTES_MS)
  server.closeIdleConnections()
  server.closeAllConnections()
  // Upgraded connections are no longer the server's, but it waits for them.
  for (const exchange of active) exchange.socket.destroy()
  await closed
}

/** Resolves as soon as `isSettled` holds, looking whenever a request is over, and after `limitMs` in any case. */
function settled(handler: Handler, isSettled: () => boolean, limitMs: number): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer)
      handler.onFinished = undefined
      resolve()
    }
    const timer = setTimeout(done, limitMs)
    const look = (): void => {
      if (isSettled()) done()
    }
    handler.onFinished = look
    look()
  })
}
