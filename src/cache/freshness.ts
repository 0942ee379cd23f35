import { type MonotonicMs, monotonicNow } from '../core/index.ts'
/** Without messages or a read for this time, a list is stale. */
const STALE_MS = 10_000

/**
 * Whether this process has the current state of a list in the shared store: it was read, and all later changes were
 * received. Without messages, it must be polled.
 */
export interface Freshness {
  /** False: read the list now, since messages may be missing. */
  readonly isCaughtUp: boolean
  /** False before the first read, and after ten seconds without messages and reads. */
  readonly isFresh: boolean
  /** Messages may have been lost. */
  missed(): void
  /** The list was read; `startedAt` is the start of the read. */
  read(startedAt: MonotonicMs): void
}

/** `isListening`: whether messages are received. */
export function createFreshness(isListening: () => boolean): Freshness {
  let missedAt = -Infinity
  let readAt = -Infinity
  const isCaughtUp = () => readAt > missedAt && isListening()
  return {
    get isCaughtUp() {
      return isCaughtUp()
    },
    get isFresh() {
      return isCaughtUp() || monotonicNow() - readAt < STALE_MS
    },
    missed() {
      missedAt = monotonicNow()
    },
    read(startedAt) {
      readAt = startedAt
    },
  }
}
