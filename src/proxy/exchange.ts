import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Caller, Clock, Failure, Inbound, LocalHandler, Route } from '../core/index.ts'
import type { Connection } from './connection.ts'

/** Longest delay that a timer takes; later ends are looked at again then. */
const MAX_TIMER_MS = 2 ** 31 - 1

/** How a request came to us. */
export interface ExchangeKind {
  readonly expectsContinue: boolean
  readonly isUpgrade: boolean
}

/** One request and its answer, from arrival to the last byte; what the stages see of it is `Inbound`. */
export class Exchange implements Inbound {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly connection: Connection
  /** Kept here: undici takes it from `request` when it is done with a streamed body. */
  readonly socket: Socket
  readonly id: string
  readonly receivedAtMs: number
  readonly method: string
  /** Set by admission; empty before. */
  path = ''
  query = ''
  readonly responseHeaders: string[]
  /** The client waits for `100 Continue` before it sends the body (RFC 9110 §10.1.1). */
  readonly expectsContinue: boolean
  readonly isUpgrade: boolean

  /** What is known so far; for the log, the metrics and the challenge. */
  localHandler: LocalHandler | undefined = undefined
  route: Route | undefined = undefined
  caller: Caller | undefined = undefined
  attempts = 0
  /** Its place among the requests that are being answered. */
  slot = -1
  /** The failure that was written straight to the connection, past the response. */
  refusal: Failure | undefined = undefined
  /** For the watch over slow bodies: when the patience ends, what then, and how much of a stream had arrived. */
  bodyUntilMs = 0
  onBodyLate: (() => void) | undefined = undefined
  streamedBytes: number | undefined = undefined

  readonly #clock: Clock
  readonly #streams: { add(by: number): void }
  #endStream: (() => void) | undefined = undefined
  #tokenEnd: NodeJS.Timeout | undefined = undefined

  constructor(
    request: IncomingMessage,
    response: ServerResponse,
    connection: Connection,
    id: string,
    kind: ExchangeKind,
    options: { readonly clock: Clock; readonly activeStreams: { add(by: number): void } },
  ) {
    this.request = request
    this.response = response
    this.connection = connection
    this.socket = request.socket
    this.id = id
    this.#clock = options.clock
    this.#streams = options.activeStreams
    this.receivedAtMs = options.clock.now()
    this.method = request.method ?? ''
    this.responseHeaders = ['x-request-id', id]
    this.expectsContinue = kind.expectsContinue
    this.isUpgrade = kind.isUpgrade
  }

  get peer(): string {
    return this.connection.peer
  }

  /** A listener for `close` on each response costs more than asking when it matters. What was not ended by us was ended by the client. */
  get gone(): boolean {
    return this.response.destroyed && !this.response.writableEnded
  }

  /** The answer to a request before it still has the connection. */
  get isQueued(): boolean {
    return this.response.socket === null && !this.response.writableFinished
  }

  /**
   * Lets what is left of the body flow away. Node would do it when the answer is out; while that waits its turn, a body
   * that nobody reads stops the connection, and nobody would see the client leave.
   */
  discardBody(): void {
    const { request, socket } = this
    if (request.complete || socket.destroyed) return
    if (request.destroyed) {
      // undici has ended it, so that it takes nothing any more; the parser stops the connection when it does not.
      request.push = () => true
      if (!socket.writableNeedDrain) socket.resume()
    } else request.resume()
  }

  /** True while an event stream runs that can be ended cleanly. */
  get isStreaming(): boolean {
    return this.#endStream !== undefined
  }

  onStream(end: () => void): void {
    if (this.#endStream !== undefined) return
    this.#endStream = end
    this.#streams.add(1)
    // GET streams end with the token that opened them (decisions §7, Sessions); answers to POST run on.
    if (this.method === 'GET' && this.caller?.kind === 'authenticated') this.#endWith(this.caller.expiresAtMs)
  }

  /** Ends a running event stream cleanly; does nothing when there is none. */
  endStream(): void {
    this.#endStream?.()
  }

  /** To be called once, when nothing more will be done for this request. */
  finish(): void {
    clearTimeout(this.#tokenEnd)
    if (this.#endStream === undefined) return
    this.#endStream = undefined
    this.#streams.add(-1)
  }

  #endWith(expiresAtMs: number | undefined): void {
    if (expiresAtMs === undefined) return
    const leftMs = expiresAtMs - this.#clock.now()
    if (leftMs <= 0) {
      this.endStream()
      return
    }
    this.#tokenEnd = setTimeout(() => this.#endWith(expiresAtMs), Math.min(leftMs, MAX_TIMER_MS))
    this.#tokenEnd.unref()
  }
}
