/** Without messages and without reading it for so long, a list counts as unknown. */
const STALE_MS = 10_000

/**
 * Whether a list that replicas share through a store is known in this process: it was read, and every change since then was
 * received as a message. While messages are not received the list has to be read again and again.
 */
export interface Freshness {
  /** False: read the list now; messages may be missing. */
  readonly isCaughtUp: boolean
  /** False before the first reading, and after ten seconds without messages and without a reading. */
  readonly isFresh: boolean
  /** Messages may have been lost. */
  missed(): void
  /** The list was read; `startedAt` (`performance.now()`) is when reading began. */
  read(startedAt: number): void
}

/** `isListening`: whether messages are received now. */
export function createFreshness(isListening: () => boolean): Freshness {
  let missedAt = -Infinity
  let readAt = -Infinity
  const isCaughtUp = () => readAt > missedAt && isListening()
  return {
    get isCaughtUp() {
      return isCaughtUp()
    },
    get isFresh() {
      return isCaughtUp() || performance.now() - readAt < STALE_MS
    },
    missed() {
      missedAt = performance.now()
    },
    read(startedAt) {
      readAt = startedAt
    },
  }
}
