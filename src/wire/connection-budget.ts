import type { Socket } from 'node:net'
import { type MonotonicMs, monotonicNow } from '../core/index.ts'
import { WireError } from './wire-error.ts'

/** Who keeps connections that are not in use. */
export interface Keeper {
  /** Ends one of them; false where there is none. */
  giveUpOne(): boolean
}

/** Who would open a connection as soon as there is room. */
interface Waiter {
  readonly sinceMs: MonotonicMs
  readonly isNeeded: () => boolean
  /** There is room; false: it is not needed any more. */
  readonly go: (isNeeded: boolean) => void
}

/**
 * Bounds the connections of several pools together. Who is beyond waits in the order in which he came, whatever the pool;
 * kept connections that nobody uses make room first, and one that becomes free goes to who has waited longest.
 */
export class ConnectionBudget {
  readonly #max: number
  #taken = 0
  /** Ended for somebody who waits, and not gone yet. */
  #leaving = 0
  readonly #waiting = new Set<Waiter>()
  /** Those that were asked in vain are last. */
  readonly #keepers = new Set<Keeper>()
  /** Nobody keeps one that is not in use; whoever gets one while others wait gives it up by himself. */
  #isBare = false

  /** @param max connections at a time; `Infinity`: no bound */
  constructor(max: number) {
    this.#max = max
  }

  join(keeper: Keeper): void {
    this.#keepers.add(keeper)
  }

  leave(keeper: Keeper): void {
    this.#keepers.delete(keeper)
  }

  /** Since when the first of those who wait does; `Infinity` while nobody does. */
  get waitedSinceMs(): number {
    if (this.#waiting.size === 0) return Infinity
    return this.#first()?.sinceMs ?? Infinity
  }

  /**
   * Opens a connection when there is room for it; its place is free again when it is closed. Throws `WireError` WIRE_CROWDED
   * after `waitMs` (0 = no bound), and what `open` throws.
   * @param isNeeded is asked while it waits, and not again after it said no: what comes is undefined then. Default: it stays so
   */
  open(open: () => Promise<Socket>, waitMs: number): Promise<Socket>
  open(open: () => Promise<Socket>, waitMs: number, isNeeded: () => boolean): Promise<Socket | undefined>
  async open(open: () => Promise<Socket>, waitMs: number, isNeeded = () => true): Promise<Socket | undefined> {
    if (this.#taken < this.#max) this.#taken++
    else if (!(await this.#room(waitMs, isNeeded))) return undefined
    try {
      const socket = await open()
      if (socket.closed) this.#giveBack()
      else socket.once('close', this.#giveBack)
      return socket
    } catch (error) {
      this.#giveBack()
      throw error
    }
  }

  /** Takes from `keeper` what others wait for. */
  collect(keeper: Keeper): void {
    while (this.#waiting.size > this.#leaving && keeper.giveUpOne()) this.#leaving++
  }

  #room(waitMs: number, isNeeded: () => boolean): Promise<boolean> {
    const { promise, resolve, reject } = Promise.withResolvers<boolean>()
    const late = (): void => {
      this.#drop(waiter)
      reject(new WireError('WIRE_CROWDED', 'all connections are taken'))
    }
    const timer = waitMs === 0 ? undefined : setTimeout(late, waitMs).unref()
    const go = (isStillNeeded: boolean): void => {
      clearTimeout(timer)
      resolve(isStillNeeded)
    }
    const waiter = { sinceMs: monotonicNow(), isNeeded, go }
    this.#waiting.add(waiter)
    this.#makeRoom()
    return promise
  }

  #makeRoom(): void {
    if (this.#isBare) return
    for (let asked = this.#keepers.size; asked > 0 && this.#waiting.size > this.#leaving; asked--) {
      const [keeper] = this.#keepers
      if (keeper === undefined) break
      this.collect(keeper)
      this.#keepers.delete(keeper)
      this.#keepers.add(keeper)
    }
    this.#isBare = this.#waiting.size > this.#leaving
  }

  /** Whoever waits first and still needs a connection. */
  #first(): Waiter | undefined {
    for (const waiter of this.#waiting) {
      if (waiter.isNeeded()) return waiter
      this.#drop(waiter)
      waiter.go(false)
    }
    return undefined
  }

  #drop(waiter: Waiter): void {
    this.#waiting.delete(waiter)
    if (this.#waiting.size === 0) this.#isBare = false
  }

  readonly #giveBack = (): void => {
    if (this.#leaving > 0) this.#leaving--
    const next = this.#first()
    if (next === undefined) {
      this.#taken--
      return
    }
    this.#drop(next)
    next.go(true)
  }
}
