/**
 * Why a connection is ended: its client does not read the answer, keeps sending a body that is not wanted any more, or
 * sends requests that have no turn.
 */
export type StuckReason = 'unread_answer' | 'unread_body' | 'pipelining'

/** The same, or answers that wait for their clients take too much memory together. */
export type CutReason = StuckReason | 'crowded'

/** How long a connection may be stuck, in milliseconds: without `least` progress, and in all. */
export type Patience = Readonly<
  Record<StuckReason, { readonly withinMs: number; readonly least: number; readonly totalMs: number }>
>

/** Remembers for how long a connection has been stuck. */
export class StuckWatch {
  #reason: StuckReason | undefined = undefined
  #sinceMs = 0
  #progress = 0
  #progressAtMs = 0

  free(): void {
    this.#reason = undefined
  }

  /** When it became stuck for this reason; 0 when it is not. */
  sinceMs(reason: StuckReason): number {
    return this.#reason === reason ? this.#sinceMs : 0
  }

  /** True when the patience is at its end; `progress` is any figure that grows while something moves. */
  isTooLong(reason: StuckReason, progress: number, patience: Patience, nowMs: number): boolean {
    const { withinMs, least, totalMs } = patience[reason]
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
