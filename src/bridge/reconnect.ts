import type { EventReader } from '../mcp/index.ts'

const FIRST_PAUSE_MS = 1000
const MAX_PAUSE_MS = 30_000

/**
 * Returns milliseconds until a stream is reopened: the server's `retry`, or an exponential pause after consecutive
 * failures.
 */
export function reconnectMs({ retryMs = FIRST_PAUSE_MS }: Pick<EventReader, 'retryMs'>, failures: number): number {
  const backoffMs = failures === 0 ? 0 : Math.min(FIRST_PAUSE_MS * 2 ** Math.min(failures - 1, 10), MAX_PAUSE_MS)
  return Math.max(retryMs, backoffMs)
}
