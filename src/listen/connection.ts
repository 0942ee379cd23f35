import type { Socket } from 'node:net'
import {
  type ClientRequest,
  type ClientResponse,
  Failure,
  type Log,
  type MonotonicMs,
  monotonicNow,
} from '../core/index.ts'
import { ServedConnection, type ServedOptions, type ServedOwner, type ServedRequest } from '../wire/index.ts'
import type { TrustedProxies } from './client.ts'
import { Peer } from './peer.ts'
import { type ConnectionLimits, readingFailure, renderRefusal, type Refusal, toldOf } from './refusal.ts'
import { StallDetector, type AbortReason, type StallReason, type StallLimits } from './stall-detector.ts'

/** Milliseconds for a rejected client to read the reason. */
const CLOSING_MS = 2000
/** Milliseconds to complete a started head once no more requests are accepted. */
const HALF_HEAD_MS = 500
/** Milliseconds to finish the response after the client half-closed the connection. */
export const HALF_CLOSED_MS = 500

/**
 * One client connection. Requests are answered sequentially (RFC 9112 §9.3.2 requires that after an unsafe one), so a
 * connection holds at most one response, however much a client pipelines. `T` is state that the owner attaches to the
 * current request.
 */
export class Connection<T = unknown> implements ServedOwner {
  readonly socket: Socket
  readonly peer: Peer
  /** Set by the owner; undefined again some time after the response. */
  served: T | undefined = undefined
  /** Its index among the connections of its listener. */
  slot = -1

  readonly #rules: ConnectionRules<T>
  readonly #wire: ServedConnection
  #request: ClientRequest | undefined = undefined
  #response: ClientResponse | undefined = undefined
  #started = 0
  #isClosing = false
  #isOver = false
  #isPaused = false
  #isHeld = false
  readonly #stalls = new StallDetector()

  constructor(socket: Socket, rules: ConnectionRules<T>) {
    this.socket = socket
    this.#rules = rules
    this.peer = new Peer(socket, rules)
    this.#wire = new ServedConnection(socket, rules.wire, this)
    // A half-closed client may have gone, or may wait for the response (RFC 9112 §9.6): the two are
    // indistinguishable. A prompt response is delivered; after that the client counts as gone, and its work is
    // aborted (ADR 0198).
    socket.once('end', () => this.#afterMs(HALF_CLOSED_MS, () => this.#isUpgraded || this.abort(undefined)))
  }

  /** Whether a response is pending, or another protocol runs after an upgrade. */
  get isBusy(): boolean {
    const response = this.#response
    return response !== undefined && !response.destroyed && !(response.writableFinished && response.socket === null)
  }

  /** Whether another protocol was requested; it handles its own end. */
  get #isUpgraded(): boolean {
    return this.#request?.isUpgrade === true
  }

  /** Whether no more requests are answered. */
  get isOver(): boolean {
    return this.#isOver
  }

  servesUpgrade(upgrade: string): boolean {
    return this.#rules.servesUpgrade(upgrade)
  }

  /** Accepts a request after the previous response is sent. */
  take(request: ServedRequest, response: ClientResponse): void {
    if (this.#isOver) return
    this.#request = request
    this.#response = response
    this.#started++
    if (this.#isClosing) response.shouldKeepAlive = false
    if (request.method === 'CONNECT') this.#refuseUnserved(new Failure('method_not_allowed', { detail: 'CONNECT' }))
    else if (request.expects === 'other') this.#refuseUnserved(new Failure('expectation_failed'))
    else this.#rules.serve(request, response, this)
  }

  /** Rejects a request that its owner has never received. */
  #refuseUnserved(failure: Failure): void {
    this.served = undefined
    this.refuse(failure)
  }

  /** Closes the connection after the current response and request body; immediately if idle. */
  closeWhenFree(): void {
    this.#isClosing = true
    const response = this.#response
    if (response !== undefined && this.isBusy) {
      response.shouldKeepAlive = false
      // The head may have promised keep-alive.
      if (response.headersSent) response.once('close', () => this.socket.destroySoon())
    } else if (this.#hasUnreadBody) this.socket.destroySoon()
    else if (this.socket.bytesRead === 0) this.socket.destroy()
    // A partial head is not a request: its rest gets a short time.
    else this.#afterMs(HALF_HEAD_MS, () => this.isBusy || this.#hasUnreadBody || this.socket.destroy())
    this.#wire.closeIdle()
  }

  /** Handles unreadable input, a missed deadline, or a socket error. */
  onUnreadable(error: Error): void {
    const failure = readingFailure(error, this.#rules.limits, this.isBusy)
    // Errors after the first are consequences.
    if (failure === undefined) this.socket.destroy()
    else if (!this.#isOver) this.refuse(failure)
  }

  stall(isStalled: boolean): void {
    if (isStalled) this.pause()
    else this.resume()
  }

  /**
   * Answers without a response object and closes the connection: for unreadable input and stalled bodies. If part of
   * a response was sent, the connection is aborted instead: the client must not take it for complete.
   */
  refuse(failure: Failure): void {
    const { socket, isBusy } = this
    const served = isBusy ? this.served : undefined
    const refusal = this.#rules.refusal(failure, served)
    // A request in progress has a log line of its own.
    if (served === undefined) this.#rules.log.info(toldOf(failure), 'connection refused')
    this.#isOver = true
    if (!socket.writable || (isBusy && this.#response?.headersSent === true)) {
      this.abort(undefined)
      return
    }
    socket.end(renderRefusal(failure, refusal))
    // Remaining input is discarded; an immediate close would reset the connection before the client has read the
    // response.
    socket.resume()
    this.#afterMs(CLOSING_MS, () => socket.destroy())
  }

  /** Bytes of its response that wait for the client. */
  get unreadBytes(): number {
    return this.socket.destroyed ? 0 : this.socket.writableLength
  }

  /** Time since `look` first saw waiting bytes; 0 before. */
  get unreadSinceMs(): number {
    return this.#stalls.sinceMs('unread_answer')
  }

  get clientAddress(): string {
    return this.#request === undefined ? this.peer.address : this.peer.clientOf(this.#request).address
  }

  /** Called about once per second: closes the connection after a stall or a missed deadline. */
  look(nowMs: MonotonicMs): void {
    this.#wire.look(monotonicNow())
    const stuck = this.#stuckIn()
    if (stuck !== undefined) {
      if (this.#stalls.isTooLong(stuck, this.#progressIn(stuck), this.#rules.stallLimits, nowMs)) this.abort(stuck)
      return
    }
    this.#stalls.free()
    // An idle connection releases its last request.
    if (!this.isBusy) this.#request = this.#response = this.served = undefined
  }

  /** Aborts the connection, so that the client recognizes an incomplete response. */
  abort(reason: AbortReason | undefined): void {
    const { socket } = this
    if (socket.destroyed) return
    if (reason !== undefined) this.#rules.onCut(reason, this.isBusy ? this.served : undefined)
    this.#isOver = true
    // A response that ends with its connection (HTTP/1.0) looks incomplete only after a reset.
    const isTorn = this.isBusy && this.#response?.headersSent === true && !this.#response.chunkedEncoding
    if (isTorn && this.#rules.canReset) socket.resetAndDestroy()
    else socket.destroy()
  }

  /** Handles the close of the socket. */
  closed(): void {
    this.#isOver = true
    // An upgraded connection reports its own end.
    if (this.isBusy) this.#response?.destroy()
  }

  get #hasUnreadBody(): boolean {
    return this.#request?.complete === false && !this.socket.destroyed
  }

  /** Stops all reading until it is called off; after the limit the connection is closed. */
  pause(): void {
    if (this.#isPaused) return
    this.#isPaused = true
    if (!this.#isHeld) this.#stopReading()
  }

  resume(): void {
    if (!this.#isPaused) return
    this.#isPaused = false
    if (!this.#isHeld) this.#readAgain()
  }

  /** The same while the consumer of the request body is slow, which is not the client's fault. */
  holdBody(isHeld: boolean): void {
    if (this.#isHeld === isHeld) return
    this.#isHeld = isHeld
    if (this.#isPaused) return
    if (isHeld) this.#stopReading()
    else this.#readAgain()
  }

  #stopReading(): void {
    // Reading a body resumes its socket, even if it was paused.
    this.socket.on('resume', this.#pauseAgain).pause()
  }

  #readAgain(): void {
    this.socket.off('resume', this.#pauseAgain).resume()
  }

  readonly #pauseAgain = (): void => void this.socket.pause()

  /** Runs `act` after the delay, unless the connection has closed. */
  #afterMs(delayMs: number, act: () => unknown): void {
    const timer = setTimeout(act, delayMs)
    timer.unref()
    this.socket.once('close', () => clearTimeout(timer))
  }

  #stuckIn(): StallReason | undefined {
    if (this.socket.writableLength > 0) return 'unread_answer'
    if (this.#hasUnreadBody && !this.isBusy) return 'unread_body'
    return this.#isPaused ? 'pipelining' : undefined
  }

  #progressIn(stuck: StallReason): number {
    if (stuck === 'unread_answer') return this.socket.bytesWritten - this.socket.writableLength
    if (stuck === 'unread_body') return this.socket.bytesRead
    return this.#started
  }
}

/** Settings shared by all connections of a listener. */
export interface ConnectionRules<T> {
  readonly log: Log
  readonly isSecure: boolean
  /** Plain TCP: only such connections can be reset. */
  readonly canReset: boolean
  readonly trustedProxies: TrustedProxies | undefined
  readonly stallLimits: StallLimits
  readonly wire: ServedOptions
  servesUpgrade(upgrade: string): boolean
  serve(request: ClientRequest, response: ClientResponse, connection: Connection<T>): void
  refusal(failure: Failure, served: T | undefined): Refusal
  onCut(reason: AbortReason, served: T | undefined): void
  readonly limits: ConnectionLimits
}
