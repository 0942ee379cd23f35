import { type MonotonicMs, monotonicNow } from '../core/index.ts'
import { KubeError } from './kube-error.ts'

/** Kinds of requests to pause, and until when. */
export interface HoldOff {
  /** Throws `KubeError` (429 `TooManyRequests`, with the remaining seconds) while requests of this kind are paused. */
  check(kind: string): void
  /** Records the `Retry-After` of an error for its kind. */
  note(kind: string, error: KubeError): void
}

/**
 * Applies a `Retry-After` of 429 and 5xx to all requests of one kind (verb and resource): otherwise, thousands of
 * objects would each retry. `now` is monotonic, in milliseconds.
 */
export function createHoldOff(now: () => MonotonicMs = monotonicNow): HoldOff {
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
