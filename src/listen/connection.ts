import type { Socket } from 'node:net'
import { type ClientRequest, type ClientResponse, Failure, type Log } from '../core/index.ts'
import { ServedConnection, type ServedOptions, type ServedOwner, type ServedRequest } from '../wire/index.ts'
import type { TrustedProxies } from './client.ts'
import { Peer } from './peer.ts'
import { type ConnectionLimits, readingFailure, renderRefusal, type Refusal, toldOf } from './refusal.ts'
import { StuckWatch, type CutReason, type StuckReason, type Patience } from './stuck.ts'

/** How long a refused client may take to read why, in milliseconds. */
const CLOSING_MS = 2000
/** How long what is missing of a head is waited for once no more requests are taken, in milliseconds. */
const HALF_HEAD_MS = 500
/** How long a client that has ended its side gets for its answer, in milliseconds. */
export const HALF_CLOSED_MS = 500

/**
 * One client connection. Its requests are answered one after the other (RFC 9112 §9.3.2 asks for that as soon as one of
 * them is not safe), so that a connection holds one answer at most, however much a client pipelines. `T` is what the
 * listener's owner wants to find again with the request that is being answered.
 */
export class Connection<T = unknown> implements ServedOwner {
  readonly socket: Socket
  readonly peer: Peer
  /** Set by the owner; undefined again some time after the answer is out. */
  served: T | undefined = undefined
  /** Its place among the connections of its listener. */
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
  readonly #watch = new StuckWatch()

  constructor(socket: Socket, rules: ConnectionRules<T>) {
    this.socket = socket
    this.#rules = rules
    this.peer = new Peer(socket, rules)
    this.#wire = new ServedConnection(socket, rules.wire, this)
    // Who has ended his side may have gone, or has said all and waits for the answer (RFC 9112 §9.6): the bytes are the same.
    // An answer that comes soon is given; after that nobody is taken to be there, and what works for him is let go (ADR 0198).
    socket.once('end', () => this.#afterMs(HALF_CLOSED_MS, () => this.#isUpgraded || this.cut(undefined)))
  }

  /** A request whose answer is not out yet, or another protocol after an upgrade. */
  get isBusy(): boolean {
    const response = this.#response
    return response !== undefined && !response.destroyed && !(response.writableFinished && response.socket === null)
  }

  /** Another protocol was asked for; its ends are its own. */
  get #isUpgraded(): boolean {
    return this.#request?.isUpgrade === true
  }

  /** Nobody is answered any more. */
  get isOver(): boolean {
    return this.#isOver
  }

  servesUpgrade(upgrade: string): boolean {
    return this.#rules.servesUpgrade(upgrade)
  }

  /** A request has come, and the answer to the one before is out. */
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

  /** Its owner has never seen this request. */
  #refuseUnserved(failure: Failure): void {
    this.served = undefined
    this.refuse(failure)
  }

  /** The connection ends with the answer that is being given, or the body that still comes; at once when nothing was asked for. */
  closeWhenFree(): void {
    this.#isClosing = true
    const response = this.#response
    if (response !== undefined && this.isBusy) {
      response.shouldKeepAlive = false
      // It may have promised to stay.
      if (response.headersSent) response.once('close', () => this.socket.destroySoon())
    } else if (this.#hasUnreadBody) this.socket.destroySoon()
    else if (this.socket.bytesRead === 0) this.socket.destroy()
    // What has come of a head, if anything has, is no request: there is a moment for the rest of it, and no more.
    else this.#afterMs(HALF_HEAD_MS, () => this.isBusy || this.#hasUnreadBody || this.socket.destroy())
    this.#wire.closeIdle()
  }

  /** What came can't be read, a deadline has passed, or the socket failed. */
  onUnreadable(error: Error): void {
    const failure = readingFailure(error, this.#rules.limits, this.isBusy)
    // What follows the first error is an echo.
    if (failure === undefined) this.socket.destroy()
    else if (!this.#isOver) this.refuse(failure)
  }

  stall(isStalled: boolean): void {
    if (isStalled) this.pause()
    else this.resume()
  }

  /**
   * Answers past the response and ends the connection: for what can't be read, and for bodies that stopped coming.
   * When part of an answer is already out, the connection is cut instead: a client must not take it for whole.
   */
  refuse(failure: Failure): void {
    const { socket, isBusy } = this
    const served = isBusy ? this.served : undefined
    const refusal = this.#rules.refusal(failure, served)
    // What belongs to a request is in that request's line.
    if (served === undefined) this.#rules.log.info(toldOf(failure), 'connection refused')
    this.#isOver = true
    if (!socket.writable || (isBusy && this.#response?.headersSent === true)) {
      this.cut(undefined)
      return
    }
    socket.end(renderRefusal(failure, refusal))
    // What the client still sends is thrown away; if we closed at once, it would be reset before it has read the answer.
    socket.resume()
    this.#afterMs(CLOSING_MS, () => socket.destroy())
  }

  /** What of its answer waits for the client, in bytes. */
  get unreadBytes(): number {
    return this.socket.destroyed ? 0 : this.socket.writableLength
  }

  /** Since when, as `look` has seen it; 0 before. */
  get unreadSinceMs(): number {
    return this.#watch.sinceMs('unread_answer')
  }

  get clientAddress(): string {
    return this.#request === undefined ? this.peer.address : this.peer.clientOf(this.#request).address
  }

  /** To be called about each second: ends the connection when it is stuck for too long, or its client takes too long. */
  look(nowMs: number): void {
    this.#wire.look(performance.now())
    const stuck = this.#stuckIn()
    if (stuck !== undefined) {
      if (this.#watch.isTooLong(stuck, this.#progressIn(stuck), this.#rules.patience, nowMs)) this.cut(stuck)
      return
    }
    this.#watch.free()
    // An idle connection holds nothing of its last request.
    if (!this.isBusy) this.#request = this.#response = this.served = undefined
  }

  /** Ends the connection at once, so that the client can tell that its answer is not whole. */
  cut(reason: CutReason | undefined): void {
    const { socket } = this
    if (socket.destroyed) return
    if (reason !== undefined) this.#rules.onCut(reason, this.isBusy ? this.served : undefined)
    this.#isOver = true
    // Where an answer ends with its connection (HTTP/1.0), only a reset shows that it is torn.
    const isTorn = this.isBusy && this.#response?.headersSent === true && !this.#response.chunkedEncoding
    if (isTorn && this.#rules.canReset) socket.resetAndDestroy()
    else socket.destroy()
  }

  /** The socket has closed. */
  closed(): void {
    this.#isOver = true
    // One that has become another protocol's says nothing by itself.
    if (this.isBusy) this.#response?.destroy()
  }

  get #hasUnreadBody(): boolean {
    return this.#request?.complete === false && !this.socket.destroyed
  }

  /** Nothing is read any more, whoever reads a body, until that is called off; too long, and it ends the connection. */
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

  /** The same for as long as whoever takes the body of its request takes no more of it: that is not the client's fault. */
  holdBody(isHeld: boolean): void {
    if (this.#isHeld === isHeld) return
    this.#isHeld = isHeld
    if (this.#isPaused) return
    if (isHeld) this.#stopReading()
    else this.#readAgain()
  }

  #stopReading(): void {
    // Reading a body resumes its socket, whoever has paused it.
    this.socket.on('resume', this.#pauseAgain).pause()
  }

  #readAgain(): void {
    this.socket.off('resume', this.#pauseAgain).resume()
  }

  readonly #pauseAgain = (): void => void this.socket.pause()

  /** Does so then, unless the connection has closed before. */
  #afterMs(delayMs: number, act: () => unknown): void {
    const timer = setTimeout(act, delayMs)
    timer.unref()
    this.socket.once('close', () => clearTimeout(timer))
  }

  #stuckIn(): StuckReason | undefined {
    if (this.socket.writableLength > 0) return 'unread_answer'
    if (this.#hasUnreadBody && !this.isBusy) return 'unread_body'
    return this.#isPaused ? 'pipelining' : undefined
  }

  #progressIn(stuck: StuckReason): number {
    if (stuck === 'unread_answer') return this.socket.bytesWritten - this.socket.writableLength
    if (stuck === 'unread_body') return this.socket.bytesRead
    return this.#started
  }
}

/** What all connections of one listener have in common. */
export interface ConnectionRules<T> {
  readonly log: Log
  readonly isSecure: boolean
  /** Plain TCP: the only connections that can be reset. */
  readonly canReset: boolean
  readonly trustedProxies: TrustedProxies | undefined
  readonly patience: Patience
  readonly wire: ServedOptions
  servesUpgrade(upgrade: string): boolean
  serve(request: ClientRequest, response: ClientResponse, connection: Connection<T>): void
  refusal(failure: Failure, served: T | undefined): Refusal
  onCut(reason: CutReason, served: T | undefined): void
  readonly limits: ConnectionLimits
}
