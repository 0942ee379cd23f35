import { after, monotonicNow } from '../core/index.ts'
/**
 * A deadline that is moved often and rarely reached: moving it only reads the clock. The timer continues and checks
 * when it fires, at least every `everyMs`, so it is never later than a new deadline.
 */
export class Deadline {
  readonly #everyMs: number
  readonly #onLate: () => void
  #atMs = 0
  #timer: NodeJS.Timeout | undefined

  /** `everyMs` is the shortest time that will be set; above 0. */
  constructor(everyMs: number, onLate: () => void) {
    this.#everyMs = everyMs
    this.#onLate = onLate
  }

  /** Sets the deadline, in milliseconds from now; 0 = none. */
  set(ms: number): void {
    if (ms === 0) return this.clear()
    this.#atMs = after(monotonicNow(), ms)
    if (this.#timer === undefined) this.#wait(ms)
  }

  clear(): void {
    this.#atMs = 0
  }

  /** Stops the timer for good. */
  stop(): void {
    this.#atMs = 0
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  #wait(ms: number): void {
    // A timer of zero milliseconds would fire every millisecond.
    this.#timer = setTimeout(this.#look, Math.min(this.#everyMs, Math.ceil(ms)))
    this.#timer.unref()
  }

  readonly #look = (): void => {
    this.#timer = undefined
    if (this.#atMs === 0) return
    const leftMs = this.#atMs - monotonicNow()
    if (leftMs > 0) return this.#wait(leftMs)
    this.#atMs = 0
    this.#onLate()
  }
}
