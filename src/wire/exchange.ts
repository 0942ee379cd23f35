import type { Duplex } from 'node:stream'
import type { Fields } from './fields.ts'
import type { WrittenRequest } from './request-head.ts'

/** What a handler may do with its exchange, from `dispatch` on. After its end, nothing happens. */
export interface ExchangeControl {
  /** Reads no further; what has been read may still come. */
  pause(): void
  resume(): void
  /**
   * Ends the exchange at once, wherever it is: one that waits for a connection leaves its queue, with its body and the
   * attempt to connect for it; one that runs ends its connection. The handler gets `reason` as its error.
   */
  abort(reason: Error): void
}

/**
 * Who is told of an exchange, in this order: start, heads (interim ones first), data, and either end, upgrade or error. What
 * it throws ends the exchange with that error.
 */
export interface ExchangeHandler {
  /** There is a connection, and the request goes out on it next, unless it is aborted now. */
  onRequestStart(control: ExchangeControl): void
  onResponseStart(control: ExchangeControl, status: number, headers: Fields): void
  onResponseData(control: ExchangeControl, data: Buffer): void
  onResponseEnd(control: ExchangeControl): void
  /** Nothing more comes; `control` is undefined where there was no connection. */
  onResponseError(control: ExchangeControl | undefined, error: Error): void
  /** The peer speaks the other protocol from here on; the socket is the handler's. */
  onRequestUpgrade?(control: ExchangeControl, status: number, headers: Fields, socket: Duplex): void
}

/** Where an exchange is: in a queue or on a connection. */
export interface ExchangePlace {
  pause(exchange: Exchange): void
  resume(exchange: Exchange): void
  abort(exchange: Exchange, reason: Error): void
}

/** One exchange, from its request to the end of its answer. */
export class Exchange implements ExchangeControl {
  readonly handler: ExchangeHandler
  /** Since when it waits for a connection, by `performance.now()`. */
  readonly sinceMs = performance.now()
  /** Undefined once it is on a connection or over: nothing keeps its body from then on but who sends it. */
  request: WrittenRequest | undefined
  /** Undefined when it is over. */
  place: ExchangePlace | undefined
  /** Ends the attempt to connect that was made for it. */
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

/** Exchanges in the order in which they came; any of them can leave at once. */
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

  /** To be called for one that is in it. */
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
