import type { TrustedProxies } from './client.ts'
import type { Socket } from 'node:net'
import { type ClientRequest, type ClientResponse, Failure, type Log } from '../core/index.ts'
import { Peer } from './peer.ts'
import type { RequestKind } from './request-kind.ts'
import { type ConnectionLimits, notUnderstood, parserFailure, renderRefusal, type Refusal, toldOf } from './refusal.ts'
import { StuckWatch, type CutReason, type StuckReason, type Patience } from './stuck.ts'
import { MAX_IN_ONE_PACKET, MAX_UNANSWERED, type Waiting } from './waiting.ts'

/** How long a refused client may take to read why, in milliseconds. */
const CLOSING_MS = 2000
/** How long what is missing of a head is waited for once no more requests are taken, in milliseconds. */
const HALF_HEAD_MS = 500

/**
 * One client connection. Its requests are answered one after the other (RFC 9112 §9.3.2 asks for that as soon as one of
 * them is not safe), so that a connection holds one answer at most, however much a client pipelines. `T` is what the
 * listener's owner wants to find again with the request that is being answered.
 */
export class Connection<T = unknown> {
  readonly socket: Socket
  readonly peer: Peer
  /** Set by the owner; undefined again some time after the answer is out. */
  served: T | undefined = undefined
  /** Its place among the connections of its listener. */
  slot = -1

  readonly #rules: ConnectionRules<T>
  #request: ClientRequest | undefined = undefined
  #response: ClientResponse | undefined = undefined
  readonly #waiting: (Waiting | Failure)[] = []
  #started = 0
  #isClosing = false
  #isOver = false
  /** What comes after this request can't be read. */
  #last: ClientRequest | undefined = undefined
  #isPaused = false
  #isHeld = false
  readonly #watch = new StuckWatch()

  constructor(socket: Socket, rules: ConnectionRules<T>) {
    this.socket = socket
    this.#rules = rules
    this.peer = new Peer(socket, rules)
    const destroySoon = socket.destroySoon.bind(socket)
    // Node ends a connection with its last answer, whether or not the client is still sending.
    socket.destroySoon = () => (this.#hasUnreadBody ? this.#linger(destroySoon) : destroySoon())
  }

  /** A request whose answer is not out yet, or another protocol after an upgrade. */
  get isBusy(): boolean {
    const response = this.#response
    return response !== undefined && !response.destroyed && !(response.writableFinished && response.socket === null)
  }

  /** Another protocol was asked for; its ends are its own. */
  get isUpgraded(): boolean {
    return this.#response !== undefined && this.#request === undefined
  }

  /** Nobody is answered any more. */
  get isOver(): boolean {
    return this.#isOver
  }

  /** A request has been parsed: it is served now or when those before it are answered. */
  take(request: ClientRequest, response: ClientResponse, kind: RequestKind): void {
    if (this.#isOver || (this.#isClosing && this.isBusy)) return
    if (this.#last !== undefined && this.#last !== request) return this.pause()
    const failure = notUnderstood(request)
    if (failure !== undefined) return this.#refuseInTurn(failure)
    if (this.#waiting.length === 0 && !this.isBusy) return this.#start(request, response, kind)
    this.#wait({ request, response, kind })
    const unanswered = this.#waiting.length + 1
    if (unanswered >= MAX_UNANSWERED) this.pause()
    if (unanswered > MAX_IN_ONE_PACKET) this.cut('pipelining')
  }

  /**
   * Nothing may be read behind `request`: Node's parser has lost what came in the same packet. The connection ends with
   * its answer.
   */
  endAfter(request: ClientRequest): void {
    this.#last ??= request
  }

  /** The connection ends with the answer that is being given, or the body that still comes; at once when nothing was asked for. */
  closeWhenFree(): void {
    this.#isClosing = true
    // Whoever pipelines asks again for what was not answered (RFC 9112 §9.3.2).
    this.#waiting.length = 0
    const response = this.#response
    if (response !== undefined && this.isBusy) {
      response.shouldKeepAlive = false
      // It may have promised to stay.
      if (response.headersSent) response.once('close', () => this.socket.destroySoon())
    } else if (this.#hasUnreadBody) this.socket.destroySoon()
    else if (this.socket.bytesRead === 0) this.socket.destroy()
    else this.#endHalfHead()
  }

  /** What has come of a head, if anything has, is no request: there is a moment for the rest of it, and no more. */
  #endHalfHead(): void {
    const timer = setTimeout(() => {
      if (!this.isBusy && !this.#hasUnreadBody) this.socket.destroy()
    }, HALF_HEAD_MS)
    timer.unref()
    this.socket.once('close', () => clearTimeout(timer))
  }

  /** Node's parser gave up, or a deadline of its passed. */
  onParserError(error: Error): void {
    const isInBody = this.isBusy && this.#request?.complete === false
    const failure = parserFailure(error, this.#rules.limits, isInBody)
    if (failure === undefined) {
      this.socket.destroy()
      return
    }
    this.#refuseInTurn(failure)
  }

  #refuseInTurn(failure: Failure): void {
    // What follows the first error, or a request behind which nothing can be read, is an echo.
    if (this.#isOver || this.#last !== undefined) return
    if (!this.isBusy || this.#request?.complete !== true) {
      this.refuse(failure)
      return
    }
    // It is a later request that is malformed, not the one that is being answered.
    this.#last = this.#request
    const last = this.#waiting.at(-1)
    if (last !== undefined && !(last instanceof Failure) && !last.request.complete) this.#waiting.pop()
    this.#wait(failure)
  }

  /**
   * Answers past the response and ends the connection: for what Node's parser refused, and for bodies that stopped coming.
   * When part of an answer is already out, the connection is cut instead: a client must not take it for whole.
   */
  refuse(failure: Failure): void {
    const { socket, isBusy } = this
    const served = isBusy ? this.served : undefined
    const refusal = this.#rules.refusal(failure, served)
    // What belongs to a request is in that request's line.
    if (served === undefined) this.#rules.log.info(toldOf(failure), 'connection refused')
    this.#isOver = true
    this.#waiting.length = 0
    if (!socket.writable || (isBusy && this.#response?.headersSent === true)) {
      this.cut(undefined)
      return
    }
    socket.end(renderRefusal(failure, refusal))
    // What the client still sends is thrown away; if we closed at once, it would be reset before it has read the answer.
    socket.resume()
    const timer = setTimeout(() => socket.destroy(), CLOSING_MS)
    timer.unref()
    socket.once('close', () => clearTimeout(timer))
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

  /** To be called about each second: ends the connection when it is stuck for too long. */
  look(nowMs: number): void {
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
    this.#waiting.length = 0
    // Where an answer ends with its connection (HTTP/1.0), only a reset shows that it is torn.
    const isTorn = this.isBusy && this.#response?.headersSent === true && !this.#response.chunkedEncoding
    if (isTorn && this.#rules.canReset) socket.resetAndDestroy()
    else socket.destroy()
  }

  /** The socket has closed; Node tells an answer that its client is gone, but not after an upgrade request. */
  closed(): void {
    this.#isOver = true
    this.#waiting.length = 0
    if (this.isBusy) this.#response?.destroy()
    // The answer came early, and somebody may still read what it was an answer to.
    else if (this.#request?.complete === false) this.#request.destroy(new Error('aborted'))
  }

  #start(request: ClientRequest, response: ClientResponse, kind: RequestKind): void {
    // After an upgrade request comes the other protocol, not a body.
    this.#request = kind.isUpgrade ? undefined : request
    this.#response = response
    this.#started++
    if (this.#isClosing || request === this.#last) response.shouldKeepAlive = false
    this.#rules.serve(request, response, this, kind)
  }

  #wait(next: Waiting | Failure): void {
    if (this.#waiting.push(next) === 1) this.#response?.once('close', this.#next)
  }

  readonly #next = (): void => {
    const next = this.#waiting.shift()
    if (next === undefined || this.socket.destroyed) return
    if (next instanceof Failure) {
      this.refuse(next)
      return
    }
    // No longer given the connection: it ends with the answer before.
    if (next.response.socket === null) {
      this.#waiting.length = 0
      return
    }
    if (this.#waiting.length + 1 < MAX_UNANSWERED) this.resume()
    this.#start(next.request, next.response, next.kind)
    if (this.#waiting.length > 0) next.response.once('close', this.#next)
  }

  get #hasUnreadBody(): boolean {
    return this.#request?.complete === false && !this.socket.destroyed
  }

  /**
   * Tells the client that no more will come, and reads what is left of its body before the connection closes: one that is
   * closed with unread data in it is reset, and the client sees an error instead of the answer (RFC 9112 §9.6).
   */
  #linger(done: () => void): void {
    const { socket } = this
    const request = this.#request
    if (this.#isOver || request === undefined) return
    this.#isOver = true
    socket.end()
    const swallow = (): void => {
      // Nobody takes it any more, and the parser stops the connection when nobody does.
      request.push = (chunk: unknown) => {
        if (chunk === null) done()
        return true
      }
      socket.resume()
    }
    if (request.destroyed) swallow()
    // Whoever was sending it on may give it up now.
    else request.once('end', done).once('close', swallow).resume()
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

  #stuckIn(): StuckReason | undefined {
    if (this.socket.writableLength > 0) return 'unread_answer'
    if (this.#hasUnreadBody && !this.isBusy) return 'unread_body'
    if (this.#isPaused) return 'pipelining'
    const last = this.#waiting.at(-1)
    // Node stops reading when nobody takes a body, and nobody would see the client leave.
    const isStopped =
      last !== undefined &&
      !(last instanceof Failure) &&
      last.request.readableLength >= last.request.readableHighWaterMark
    return isStopped ? 'pipelining' : undefined
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
  serve(request: ClientRequest, response: ClientResponse, connection: Connection<T>, kind: RequestKind): void
  refusal(failure: Failure, served: T | undefined): Refusal
  onCut(reason: CutReason, served: T | undefined): void
  readonly limits: ConnectionLimits
}
