import type { EventReader } from '../mcp/index.ts'

const FIRST_PAUSE_MS = 1000
const MAX_PAUSE_MS = 30_000

/**
 * Milliseconds until a stream is opened again: what the server asked for (`retry`), as it was sent. After failures in a
 * row at least a pause that doubles, so that a server that is down is left alone.
 */
export function reconnectMs({ retryMs = FIRST_PAUSE_MS }: Pick<EventReader, 'retryMs'>, failures: number): number {
  const backoffMs = failures === 0 ? 0 : Math.min(FIRST_PAUSE_MS * 2 ** Math.min(failures - 1, 10), MAX_PAUSE_MS)
  return Math.max(retryMs, backoffMs)
}
