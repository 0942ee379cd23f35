import type { Duplex } from 'node:stream'
import { monotonicNow } from '../core/index.ts'
import type { Fields } from './fields.ts'
import type { WrittenRequest } from './request-head.ts'

/** Controls of a handler for its exchange, from `dispatch` on. No effect after its end. */
export interface ExchangeControl {
  /** Pauses reading; data read before may still arrive. */
  pause(): void
  resume(): void
  /**
   * Aborts the exchange in any state: a queued one leaves its queue with its body and its connection attempt; a
   * running one closes its connection. The handler gets `reason` as its error.
   */
  abort(reason: Error): void
}

/**
 * Receives the events of an exchange, in this order: start, heads (interim ones first), data, and finally end,
 * upgrade or error. An exception ends the exchange with that error.
 */
export interface ExchangeHandler {
  /** A connection is available; the request is sent next unless it is aborted now. */
  onRequestStart(control: ExchangeControl): void
  onResponseStart(control: ExchangeControl, status: number, headers: Fields): void
  onResponseData(control: ExchangeControl, data: Buffer): void
  onResponseEnd(control: ExchangeControl): void
  /** The last event; `control` is undefined without a connection. */
  onResponseError(control: ExchangeControl | undefined, error: Error): void
  /** The peer switched protocols; the handler owns the socket. */
  onRequestUpgrade?(control: ExchangeControl, status: number, headers: Fields, socket: Duplex): void
}

/** The location of an exchange: a queue or a connection. */
export interface ExchangePlace {
  pause(exchange: Exchange): void
  resume(exchange: Exchange): void
  abort(exchange: Exchange, reason: Error): void
}

/** An exchange, from its request to the end of its response. */
export class Exchange implements ExchangeControl {
  readonly handler: ExchangeHandler
  /** Start of waiting for a connection. */
  readonly sinceMs = monotonicNow()
  /** Undefined once it is on a connection or over: from then on, only the sender keeps the body in memory. */
  request: WrittenRequest | undefined
  /** Undefined when finished. */
  place: ExchangePlace | undefined
  /** Aborts its connection attempt. */
  attempt: AbortController | undefined = undefined
  /** Its neighbors in a queue. */
  before: Exchange | undefined = undefined
  after: Exchange | undefined = undefined

  constructor(request: WrittenRequest, handler: ExchangeHandler, place: ExchangePlace) {
    this.request = request
    this.handler = handler
    this.place = place
  }

  pause(): void {
    this.place?.pause(this)
  }

  resume(): void {
    this.place?.resume(this)
  }

  abort(reason: Error): void {
    this.place?.abort(this, reason)
  }
}

/** Exchanges in order of arrival; each can be removed in constant time. */
export class ExchangeQueue {
  first: Exchange | undefined = undefined
  last: Exchange | undefined = undefined
  length = 0

  push(exchange: Exchange): void {
    exchange.before = this.last
    if (this.last === undefined) this.first = exchange
    else this.last.after = exchange
    this.last = exchange
    this.length++
  }

  /** Removes a member; it must be in the queue. */
  remove(exchange: Exchange): void {
    const { before, after } = exchange
    if (before === undefined) this.first = after
    else before.after = after
    if (after === undefined) this.last = before
    else after.before = before
    exchange.before = exchange.after = undefined
    this.length--
  }

  shift(): Exchange | undefined {
    const { first } = this
    if (first !== undefined) this.remove(first)
    return first
  }
}
