import { backoffMs } from './backoff.ts'
import { KubeError } from './kube-error.ts'
import { pause, systemTimers, type Timers } from './timers.ts'

export interface RetryOptions {
  /** Stops the retries. */
  readonly signal: AbortSignal
  /** Called after each failure; `failures` counts from 1. */
  readonly onFailure: (error: KubeError, failures: number) => void
  readonly timers?: Timers
  /** 0 ≤ n < 1. Default Math.random. */
  readonly random?: () => number
}

const FIRST_PAUSE_MS = 200
/** Short: reads are few, and the operator waits for them. */
const MOST_PAUSE_MS = 5_000

/**
 * Repeats `attempt` until the API server responds, with pauses from 0.2 s to 5 s. Undefined if `signal` aborts first.
 * Throws errors other than `KubeError`.
 */
export async function retryUntilAnswered<T>(
  attempt: () => Promise<T>,
  { signal, onFailure, timers = systemTimers, random = Math.random }: RetryOptions,
): Promise<T | undefined> {
  for (let failures = 1; !signal.aborted; failures++) {
    try {
      return await attempt()
    } catch (error) {
      if (!(error instanceof KubeError)) throw error
      if (signal.aborted) return undefined
      onFailure(error, failures)
      const ms = backoffMs(failures, { firstMs: FIRST_PAUSE_MS, mostMs: MOST_PAUSE_MS, random })
      await pause(timers, Math.max(ms, (error.retryAfterSeconds ?? 0) * 1000), signal)
    }
  }
  return undefined
}
