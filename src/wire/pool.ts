import type { Socket } from 'node:net'
import { after, monotonicNow } from '../core/index.ts'
import type { ConnectionBudget, Keeper } from './connection-budget.ts'
import { WireConnection, type ConnectionOwner, type ExchangeBounds } from './connection.ts'
import { Exchange, type ExchangeControl, type ExchangeHandler, type ExchangePlace, ExchangeQueue } from './exchange.ts'
import { type RequestTarget, type WireRequest, writeRequest } from './request-head.ts'
import { WireError } from './wire-error.ts'

export interface PoolOptions extends RequestTarget {
  /** Opens a connection, TLS included, within its own timeout; stops when `signal` is aborted. */
  readonly connect: (signal: AbortSignal) => Promise<Socket>
  readonly bounds: ExchangeBounds
  /** Maximum idle time of a connection, in milliseconds. */
  readonly keepMs: number
  /** Maximum number of connections; further requests wait in order of arrival. */
  readonly maxConnections: number
  /** Bounds the connections of all pools together. */
  readonly budget: ConnectionBudget
  /** Maximum wait for a connection in milliseconds; 0 = no bound. */
  readonly waitMs: number
}

/** Subtracted from the peer's keep-alive timeout, in milliseconds: a request in transit at that time would be lost. */
const HINT_MARGIN_MS = 2000
const SWEEP_MS = 1000

/**
 * The connections to one peer with one client identity, each with one exchange at a time. A used connection is reused
 * only after a full turn of the event loop without an exchange: an unsolicited response or the end of the connection
 * has then been read, and does not affect the next request.
 */
export class Pool implements ConnectionOwner, Keeper, ExchangePlace {
  readonly bounds: ExchangeBounds
  readonly #options: PoolOptions
  readonly #all = new Set<WireConnection>()
  /** Idle connections, most recently used last. */
  #ready: WireConnection[] = []
  /** Released in this turn of the event loop. */
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
   * Sends a request as soon as a connection is available. Errors go to the handler; those of the request itself
   * immediately, and the result is undefined.
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

  /** Aborts a waiting exchange and the connection attempt made for it. */
  abort(exchange: Exchange, reason: Error): void {
    this.#waiting.remove(exchange)
    exchange.attempt?.abort(reason)
    this.#failWaiting(exchange, reason)
    if (this.#isClosed) this.#endIfEmpty()
  }

  /** Nothing is read before a connection exists. */
  pause(): void {}
  resume(): void {}

  /** Rejects new requests; resolves when all exchanges have ended. */
  close(): Promise<void> {
    this.#isClosed = true
    this.#endIfEmpty()
    return this.#empty.promise
  }

  /** Aborts all exchanges and closes all connections. */
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
    // A request of another pool may have waited longer.
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

  closeIdle(): boolean {
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
    // Connections released in this turn are available in the next.
    const missing = this.#waiting.length - this.#fresh.length - this.#connecting
    const free = this.#options.maxConnections - this.#all.size - this.#connecting
    this.#connectFor(Math.min(missing, free))
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
    // A later exchange may use the attempt's connection.
    exchange.attempt = undefined
    connection.begin(exchange)
  }

  /** Starts `count` connection attempts for the newest waiting exchanges; the older ones already have an attempt. */
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
      // Other attempts may still serve the waiting exchanges.
      if (!signal.aborted && this.#waiting.length > this.#connecting + this.#fresh.length)
        this.#failFirst(error as Error)
      else if (this.#waiting.length > 0) this.#schedule()
    }
    if (this.#isClosed) this.#endIfEmpty()
  }

  /** Whether a queued connection attempt is still needed: other connections may have been released. */
  readonly #isMissing = (): boolean => {
    if (this.#waiting.length - this.#fresh.length >= this.#connecting) return true
    this.#connecting--
    return false
  }

  /** Fails exchanges that have waited for `waitMs` while all connections are in use. */
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
