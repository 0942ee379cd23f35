import type { MonotonicMs } from '../core/index.ts'
/**
 * Why a connection is stalled: its client does not read the response, keeps sending an unwanted body, or pipelines
 * too many requests.
 */
export type StallReason = 'unread_answer' | 'unread_body' | 'pipelining'

/** Adds the memory limit for unread responses of all clients. */
export type AbortReason = StallReason | 'crowded'

/** Stall limits in milliseconds: without `least` progress, and in total. */
export type StallLimits = Readonly<
  Record<StallReason, { readonly withinMs: number; readonly least: number; readonly totalMs: number }>
>

/** Tracks for how long a connection has been stalled. */
export class StallDetector {
  #reason: StallReason | undefined = undefined
  #sinceMs = 0
  #progress = 0
  #progressAtMs = 0

  free(): void {
    this.#reason = undefined
  }

  /** Start of the stall for this reason; 0 without one. */
  sinceMs(reason: StallReason): number {
    return this.#reason === reason ? this.#sinceMs : 0
  }

  /** True after the limit; `progress` is any number that grows with progress. */
  isTooLong(reason: StallReason, progress: number, limits: StallLimits, nowMs: MonotonicMs): boolean {
    const { withinMs, least, totalMs } = limits[reason]
    const isNew = reason !== this.#reason
    if (isNew) {
      this.#reason = reason
      this.#sinceMs = nowMs
    }
    if (isNew || progress - this.#progress >= least) {
      this.#progress = progress
      this.#progressAtMs = nowMs
    }
    return nowMs - this.#progressAtMs >= withinMs || nowMs - this.#sinceMs >= totalMs
  }
}
