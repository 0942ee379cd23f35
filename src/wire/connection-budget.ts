import type { Socket } from 'node:net'
import { type MonotonicMs, monotonicNow } from '../core/index.ts'
import { WireError } from './wire-error.ts'

/** A pool with idle connections. */
export interface Keeper {
  /** Closes an idle connection; false without one. */
  closeIdle(): boolean
}

/** A request for a connection, queued until the budget allows it. */
interface Waiter {
  readonly sinceMs: MonotonicMs
  readonly isNeeded: () => boolean
  /** Ends the wait: true: open the connection; false: it is no longer needed. */
  readonly go: (isNeeded: boolean) => void
}

/**
 * Bounds the connections of several pools together. Requests above the bound wait in order of arrival, across pools.
 * Idle connections are closed for them first; a released connection serves the longest wait.
 */
export class ConnectionBudget {
  readonly #max: number
  #taken = 0
  /** Connections being closed for waiting requests. */
  #leaving = 0
  readonly #waiting = new Set<Waiter>()
  /** Pools without idle connections are last. */
  readonly #keepers = new Set<Keeper>()
  /** No pool has idle connections; a pool closes released ones while requests of other pools wait. */
  #hasNoIdle = false

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

  /** Start of the longest wait; `Infinity` without one. */
  get waitedSinceMs(): number {
    if (this.#waiting.size === 0) return Infinity
    return this.#first()?.sinceMs ?? Infinity
  }

  /**
   * Opens a connection when the budget allows it; its slot is free again after it is closed. Throws `WireError`
   * WIRE_CROWDED after `waitMs` (0 = no bound), and the errors of `open`. `isNeeded` is called while waiting until it
   * returns false; the result is undefined then. Default: always needed.
   */
  open(open: () => Promise<Socket>, waitMs: number): Promise<Socket>
  open(open: () => Promise<Socket>, waitMs: number, isNeeded: () => boolean): Promise<Socket | undefined>
  async open(open: () => Promise<Socket>, waitMs: number, isNeeded = () => true): Promise<Socket | undefined> {
    if (this.#taken < this.#max) this.#taken++
    else if (!(await this.#waitForSlot(waitMs, isNeeded))) return undefined
    try {
      const socket = await open()
      if (socket.closed) this.#releaseSlot()
      else socket.once('close', this.#releaseSlot)
      return socket
    } catch (error) {
      this.#releaseSlot()
      throw error
    }
  }

  /** Closes idle connections of `keeper` for waiting requests of other pools. */
  collect(keeper: Keeper): void {
    while (this.#waiting.size > this.#leaving && keeper.closeIdle()) this.#leaving++
  }

  #waitForSlot(waitMs: number, isNeeded: () => boolean): Promise<boolean> {
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
    this.#reclaimIdle()
    return promise
  }

  #reclaimIdle(): void {
    if (this.#hasNoIdle) return
    for (let asked = this.#keepers.size; asked > 0 && this.#waiting.size > this.#leaving; asked--) {
      const [keeper] = this.#keepers
      if (keeper === undefined) break
      this.collect(keeper)
      this.#keepers.delete(keeper)
      this.#keepers.add(keeper)
    }
    this.#hasNoIdle = this.#waiting.size > this.#leaving
  }

  /** The longest wait that still needs a connection. */
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
    if (this.#waiting.size === 0) this.#hasNoIdle = false
  }

  readonly #releaseSlot = (): void => {
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
