/**
 * Why a connection is ended: its client does not read the answer, keeps sending a body that is not wanted any more, or
 * sends requests that have no turn.
 */
export type StuckReason = 'unread_answer' | 'unread_body' | 'pipelining'

/** How long a connection may be stuck, in milliseconds: without any progress, and in all. */
export type Patience = Readonly<Record<StuckReason, { readonly silenceMs: number; readonly totalMs: number }>>

/** Remembers for how long a connection has been stuck. */
export class StuckWatch {
  #reason: StuckReason | undefined = undefined
  #sinceMs = 0
  #progress = -1
  #progressAtMs = 0

  free(): void {
    this.#reason = undefined
  }

  /** True when the patience is at its end; `progress` is any figure that grows while something moves. */
  isTooLong(reason: StuckReason, progress: number, patience: Patience, nowMs: number): boolean {
    if (reason !== this.#reason) {
      this.#reason = reason
      this.#sinceMs = nowMs
      this.#progress = -1
    }
    if (progress !== this.#progress) {
      this.#progress = progress
      this.#progressAtMs = nowMs
    }
    const { silenceMs, totalMs } = patience[reason]
    return nowMs - this.#progressAtMs >= silenceMs || nowMs - this.#sinceMs >= totalMs
  }
}
