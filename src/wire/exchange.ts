import type { Duplex } from 'node:stream'
import type { Fields } from './fields.ts'

/** What a handler may do with its exchange. After its end, nothing happens. */
export interface ExchangeControl {
  /** Reads no further; what has been read may still come. */
  pause(): void
  resume(): void
  /** Ends the exchange and its connection; the handler is told `reason` as its error. */
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
