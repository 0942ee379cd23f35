import type { Socket } from 'node:net'
import { after, monotonicNow } from '../core/index.ts'
import type { ConnectionBudget, Keeper } from './connection-budget.ts'
import { WireConnection, type ConnectionOwner, type ExchangeBounds } from './connection.ts'
import { Exchange, type ExchangeControl, type ExchangeHandler, type ExchangePlace, ExchangeQueue } from './exchange.ts'
import { type RequestTarget, type WireRequest, writeRequest } from './request-head.ts'
import { WireError } from './wire-error.ts'

export interface PoolOptions extends RequestTarget {
  /** Opens a connection, TLS included, within the bound that it has; gives up when `signal` says so. */
  readonly connect: (signal: AbortSignal) => Promise<Socket>
  readonly bounds: ExchangeBounds
  /** How long an unused connection is kept at most, in milliseconds. */
  readonly keepMs: number
  /** Connections at a time; requests beyond wait in the order in which they came. */
  readonly maxConnections: number
  /** Bounds them together with those of other pools. */
  readonly budget: ConnectionBudget
  /** How long a request waits for a connection while all are taken, in milliseconds; 0 = no bound. */
  readonly waitMs: number
}

/** A peer that names the time after which it closes gets this much less, in milliseconds: what is on its way then is lost. */
const HINT_MARGIN_MS = 2000
const SWEEP_MS = 1000

/**
 * The connections to one peer with one identity: each has one exchange at a time, and there are as many as are needed.
 *
 * A used connection is given to a request only after a whole turn of the event loop without an exchange: an answer that nobody
 * asked for, or the end of the connection, has then been read, and does not meet the next request.
 */
export class Pool implements ConnectionOwner, Keeper, ExchangePlace {
  readonly bounds: ExchangeBounds
  readonly #options: PoolOptions
  readonly #all = new Set<WireConnection>()
  /** Ready for use; the one that was used last is last. */
  #ready: WireConnection[] = []
  /** Freed in this turn. */
  #fresh: WireConnection[] = []
  readonly #waiting = new ExchangeQueue()
  #connecting = 0
  #isScheduled = false
  #isClosed = false
  #sweep: NodeJS.Timeout | undefined
  readonly #empty = Promise.withResolvers<void>()

  constructor(options: PoolOptions) {
    this.#options = options
    this.bounds = options.bounds
    options.budget.join(this)
  }

  /**
   * Sends a request as soon as there is a connection. Errors go to the handler, those of the request itself at once; undefined
   * then.
   */
  dispatch(request: WireRequest, handler: ExchangeHandler): ExchangeControl | undefined {
    let exchange: Exchange
    try {
      if (this.#isClosed) throw new WireError('WIRE_POOL_CLOSED', 'no more requests are sent')
      exchange = new Exchange(writeRequest(request, this.#options), handler, this)
    } catch (error) {
      handler.onResponseError(undefined, error as Error)
      return undefined
    }
    this.#waiting.push(exchange)
    this.#schedule()
    return exchange
  }

  /** Ends an exchange that waits; whatever was begun for it alone ends with it. */
  abort(exchange: Exchange, reason: Error): void {
    this.#waiting.remove(exchange)
    exchange.attempt?.abort(reason)
    this.#failWaiting(exchange, reason)
    if (this.#isClosed) this.#endIfEmpty()
  }

  /** Nothing is read before there is a connection. */
  pause(): void {}
  resume(): void {}

  /** Takes nothing new; ends when what there is has ended. */
  close(): Promise<void> {
    this.#isClosed = true
    this.#endIfEmpty()
    return this.#empty.promise
  }

  /** Ends everything at once. */
  destroy(): Promise<void> {
    this.#isClosed = true
    const error = new WireError('WIRE_POOL_CLOSED', 'the connections were closed')
    for (let exchange = this.#waiting.first; exchange !== undefined; exchange = this.#waiting.first)
      this.abort(exchange, error)
    for (const connection of this.#all) connection.destroy(error)
    this.#end()
    return this.#empty.promise
  }

  free(connection: WireConnection, keepMs: number | undefined): void {
    const hintMs = keepMs === undefined ? Infinity : keepMs - HINT_MARGIN_MS
    const leftMs = Math.min(hintMs, this.#options.keepMs)
    // Somebody else may wait for longer than anybody here.
    const isWanted = this.#options.budget.waitedSinceMs < (this.#waiting.first?.sinceMs ?? Infinity)
    if (leftMs <= 0 || isWanted) return connection.destroy(unused())
    connection.keptUntilMs = after(monotonicNow(), leftMs)
    this.#fresh.push(connection)
    this.#schedule()
  }

  lost(connection: WireConnection): void {
    this.#all.delete(connection)
    if (this.#waiting.length > 0) this.#schedule()
    if (this.#isClosed) this.#endIfEmpty()
  }

  giveUpOne(): boolean {
    for (;;) {
      const connection = this.#ready.shift()
      if (connection === undefined) return false
      const { isUsable } = connection
      connection.destroy(unused())
      if (isUsable) return true
    }
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(this.#serve)
  }

  readonly #serve = (): void => {
    this.#isScheduled = false
    this.#dropLate()
    while (this.#waiting.length > 0) {
      const connection = this.#takeReady()
      if (connection === undefined) break
      this.#begin(connection)
    }
    // Those that were freed in this turn are there in the next.
    const missing = this.#waiting.length - this.#fresh.length - this.#connecting
    const room = this.#options.maxConnections - this.#all.size - this.#connecting
    this.#connectFor(Math.min(missing, room))
    const hasFresh = this.#fresh.length > 0
    this.#ready.push(...this.#fresh)
    this.#fresh = []
    if (hasFresh && this.#waiting.length > 0) this.#schedule()
    else if (hasFresh) this.#options.budget.collect(this)
    if (this.#isClosed) this.#endIfEmpty()
    else if (this.#ready.length > 0 || this.#waiting.length > 0) this.#sweepLater()
  }

  #begin(connection: WireConnection): void {
    const exchange = this.#waiting.shift()
    if (exchange === undefined) return this.free(connection, undefined)
    // Whoever comes next may use it.
    exchange.attempt = undefined
    connection.begin(exchange)
  }

  /** Begins so many attempts to connect, for those who came last: the attempts of the others have begun already. */
  #connectFor(count: number): void {
    let exchange = this.#waiting.last
    for (let left = count; left > 0; left--) {
      while (exchange?.attempt !== undefined) exchange = exchange.before
      const attempt = new AbortController()
      if (exchange !== undefined) exchange.attempt = attempt
      void this.#connect(attempt.signal)
    }
  }

  #takeReady(): WireConnection | undefined {
    for (;;) {
      const connection = this.#ready.pop()
      if (connection === undefined) return undefined
      if (connection.isUsable && monotonicNow() < connection.keptUntilMs) return connection
      connection.destroy(unused())
    }
  }

  async #connect(signal: AbortSignal): Promise<void> {
    const { budget, connect, waitMs } = this.#options
    this.#connecting++
    try {
      const socket = await budget.open(() => connect(signal), waitMs, this.#isMissing)
      if (socket === undefined) return
      this.#connecting--
      const connection = new WireConnection(socket, this)
      this.#all.add(connection)
      if (this.#waiting.length > 0 && connection.isUsable) this.#begin(connection)
      else this.free(connection, undefined)
    } catch (error) {
      this.#connecting--
      // Others may be on their way to those who wait.
      if (!signal.aborted && this.#waiting.length > this.#connecting + this.#fresh.length)
        this.#failFirst(error as Error)
      else if (this.#waiting.length > 0) this.#schedule()
    }
    if (this.#isClosed) this.#endIfEmpty()
  }

  /** Whether a connection that is not begun yet is still needed: others may have become free. */
  readonly #isMissing = (): boolean => {
    if (this.#waiting.length - this.#fresh.length >= this.#connecting) return true
    this.#connecting--
    return false
  }

  /** Whoever waits for a connection that will not become free in time is told so. */
  #dropLate(): void {
    const { waitMs, maxConnections } = this.#options
    if (waitMs === 0 || this.#all.size < maxConnections) return
    const sinceMs = monotonicNow() - waitMs
    while (this.#waiting.first !== undefined && this.#waiting.first.sinceMs <= sinceMs)
      this.#failFirst(new WireError('WIRE_CROWDED', 'all connections are taken'))
  }

  #failFirst(error: Error): void {
    const exchange = this.#waiting.shift()
    if (exchange !== undefined) this.#failWaiting(exchange, error)
  }

  #failWaiting(exchange: Exchange, error: Error): void {
    exchange.attempt = exchange.request = exchange.place = undefined
    exchange.handler.onResponseError(undefined, error)
  }

  #sweepLater(): void {
    if (this.#sweep !== undefined) return
    this.#sweep = setTimeout(() => {
      this.#sweep = undefined
      const nowMs = monotonicNow()
      const kept = this.#ready.filter((connection) => {
        if (nowMs < connection.keptUntilMs && connection.isUsable) return true
        connection.destroy(unused())
        return false
      })
      this.#ready = kept
      this.#serve()
    }, SWEEP_MS)
    this.#sweep.unref()
  }

  #endIfEmpty(): void {
    if (this.#waiting.length > 0) return
    for (const connection of [...this.#ready.splice(0), ...this.#fresh.splice(0)]) connection.destroy(unused())
    if (this.#all.size > 0) return
    this.#end()
  }

  #end(): void {
    clearTimeout(this.#sweep)
    this.#options.budget.leave(this)
    this.#empty.resolve()
  }
}

const unused = (): WireError => new WireError('WIRE_CLOSED', 'a connection that is not needed any more')
