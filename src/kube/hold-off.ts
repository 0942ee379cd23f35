import { KubeError } from './kube-error.ts'

/** What the server wants to be left alone with, and until when. */
export interface HoldOff {
  /** Throws `KubeError` (429 `TooManyRequests`, with the seconds that are left) while requests of this kind are not wanted. */
  check(kind: string): void
  /** Remembers what an answer says about requests of its kind. */
  note(kind: string, error: KubeError): void
}

/**
 * Keeps a `Retry-After` of 429 and 5xx for all requests of one kind (verb and resource): with thousands of objects, each would
 * ask once more otherwise. `now` gives milliseconds that only move on.
 */
export function createHoldOff(now: () => number = () => performance.now()): HoldOff {
  const until = new Map<string, number>()
  return {
    check(kind) {
      const leftMs = (until.get(kind) ?? 0) - now()
      if (leftMs > 0) throw new KubeError(429, 'TooManyRequests', { retryAfterSeconds: Math.ceil(leftMs / 1000) })
      until.delete(kind)
    },
    note(kind, { status, retryAfterSeconds }) {
      if (retryAfterSeconds !== undefined && (status === 429 || status >= 500))
        until.set(kind, now() + retryAfterSeconds * 1000)
    },
  }
}
