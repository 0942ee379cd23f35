/**
 * A deadline that is moved often and hardly ever reached: to move it costs a look at the clock. The timer behind it runs on and
 * looks again when it fires, at least each `everyMs`, so that it is never later than a new deadline.
 */
export class Deadline {
  readonly #everyMs: number
  readonly #onLate: () => void
  #atMs = 0
  #timer: NodeJS.Timeout | undefined

  /** @param everyMs the shortest time that will be set; above 0 */
  constructor(everyMs: number, onLate: () => void) {
    this.#everyMs = everyMs
    this.#onLate = onLate
  }

  /** In so many milliseconds from now; 0 = none. */
  set(ms: number): void {
    if (ms === 0) return this.clear()
    this.#atMs = performance.now() + ms
    if (this.#timer === undefined) this.#wait(ms)
  }

  clear(): void {
    this.#atMs = 0
  }

  /** To be called when it is not needed any more. */
  stop(): void {
    this.#atMs = 0
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  #wait(ms: number): void {
    // A timer of zero milliseconds would be one of a millisecond again and again.
    this.#timer = setTimeout(this.#look, Math.min(this.#everyMs, Math.ceil(ms)))
    this.#timer.unref()
  }

  readonly #look = (): void => {
    this.#timer = undefined
    if (this.#atMs === 0) return
    const leftMs = this.#atMs - performance.now()
    if (leftMs > 0) return this.#wait(leftMs)
    this.#atMs = 0
    this.#onLate()
  }
}
