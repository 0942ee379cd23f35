import type { Socket } from 'node:net'
import type { ReceivedHead } from './received-head.ts'
import { RequestReader, type RequestSink } from './request-reader.ts'
import { ServedRequest } from './served-request.ts'
import { type ResponseOwner, ServedResponse } from './served-response.ts'
import { hear } from './socket-events.ts'
import { malformed, WireError } from './wire-error.ts'

/** Bytes behind a request that is being answered, and pieces of them; beyond it nothing more is read. */
const MAX_WAITING_BYTES = 64 * 1024
const MAX_WAITING_PIECES = 256
/** Bytes of another protocol that a client may send before its backend has agreed to it; more ends the connection. */
const MAX_EARLY_BYTES = 128 * 1024

/** How long a client may take, in milliseconds. */
export interface ServedDeadlines {
  /** For a head. */
  readonly headersMs: number
  /** For a whole request; 0 = no bound. */
  readonly requestMs: number
  /** Between requests; 0 = no bound. */
  readonly keepAliveMs: number
}

export interface ServedOptions {
  readonly deadlines: ServedDeadlines
  /** Larger heads are refused. */
  readonly maxHeadBytes: number
  /** Value of `Keep-Alive`; undefined for none. */
  readonly keepAlive: string | undefined
}

/** Who serves the requests of a connection. */
export interface ServedOwner {
  /** It answers nobody any more: what comes is thrown away, but for the rest of a body. */
  readonly isOver: boolean
  /** Whether this protocol may begin behind the request that asks for it; otherwise it is a request like any other. */
  servesUpgrade(upgrade: string): boolean
  /** A request, when the answer to the one before is out. */
  take(request: ServedRequest, response: ServedResponse): void
  /** What came can't be read, a deadline has passed, or the socket failed. */
  onUnreadable(error: Error): void
  /** Nobody reads on before this is called off. */
  stall(isStalled: boolean): void
}

/** Serves the requests of a connection: one after the other, however many come at once. */
export class ServedConnection implements RequestSink, ResponseOwner {
  readonly keepAlive: string | undefined
  readonly #socket: Socket
  readonly #owner: ServedOwner
  readonly #deadlines: ServedDeadlines
  readonly #reader: RequestReader
  readonly #unhear: () => void
  /** What was read last; until it is whole and answered, and all that came with it has been read. */
  #request: ServedRequest | undefined = undefined
  /** Until it is out. */
  #response: ServedResponse | undefined = undefined
  /** It is served when what came with its head has been read. */
  #isPending = false
  /** What came behind the request that is being answered. */
  readonly #waiting: Buffer[] = []
  #waitingBytes = 0
  #isStalled = false
  #hasEnded = false
  /** The last answer is out. */
  #isEnding = false
  #isGone = false
  /** Since when a request comes or is awaited, by `performance.now()`. */
  #sinceMs = performance.now()
  /** Nothing has come at all. */
  #isFresh = true
  /** Nothing has come since the last answer. */
  #isIdle = false

  constructor(socket: Socket, options: ServedOptions, owner: ServedOwner) {
    this.#socket = socket
    this.#owner = owner
    this.#deadlines = options.deadlines
    this.keepAlive = options.keepAlive
    this.#reader = new RequestReader(this, options.maxHeadBytes)
    this.#unhear = hear(socket, {
      onData: this.#onData,
      onEnd: this.#onEnd,
      onError: this.#onError,
      onClose: this.#onClose,
      onDrain: this.#onDrain,
    })
  }

  /** To be called about each second. */
  look(nowMs: number): void {
    if (this.#isGone || this.#isEnding || this.#owner.isOver) return
    const { headersMs, requestMs, keepAliveMs } = this.#deadlines
    const sinceMs = nowMs - this.#sinceMs
    if (this.#reader.isInBody) {
      if (requestMs > 0 && sinceMs >= requestMs) this.#fail(timedOut())
    } else if (this.#isFresh || this.#reader.isInHead) {
      if (sinceMs >= headersMs) this.#fail(timedOut())
    } else if (this.#isIdle && keepAliveMs > 0 && sinceMs >= keepAliveMs) this.#socket.destroy()
  }

  /** Ends the connection when it has nothing to do. */
  closeIdle(): void {
    // Behind a request that is being answered nothing is read.
    if (!this.#isGone && this.#reader.isBetween) this.#socket.destroy()
  }

  onHead(head: ReceivedHead): boolean {
    const { upgrade } = head
    const isUpgrade = upgrade !== undefined && this.#owner.servesUpgrade(upgrade)
    const request = new ServedRequest(head, isUpgrade, this.#socket, this.#resume)
    const response = new ServedResponse(head, isUpgrade, this)
    response.assignSocket(this.#socket)
    if (isUpgrade) request.receiveEnd()
    this.#request = request
    this.#response = response
    this.#isPending = true
    this.#isIdle = false
    this.#isFresh = false
    return isUpgrade
  }

  onBody(data: Buffer): void {
    if (this.#request?.receive(data) === false) this.#socket.pause()
  }

  onEnd(): boolean {
    this.#request?.receiveEnd()
    // Its reader may not have taken all of it yet, and asks for nothing more.
    this.#resume()
    this.#sinceMs = performance.now()
    if (this.#isEnding) this.#socket.destroySoon()
    if (this.#isEnding || this.#response !== undefined) return false
    this.#request = undefined
    this.#isIdle = true
    return true
  }

  onAnswered(response: ServedResponse): void {
    const request = this.#request
    this.#response = undefined
    response.letGo()
    const { keeps } = response
    if (!keeps) this.#endWith(request)
    else if (request?.complete === false) request.dump()
    else {
      // An idle connection holds nothing of its last request.
      this.#request = undefined
      this.#reader.next()
      this.#isIdle = true
      this.#sinceMs = performance.now()
    }
    response.close()
    // Only now: whoever waited for this end may have ended the connection with it.
    if (keeps && request?.complete === true && this.#socket.writable) this.#readWaiting()
  }

  onDetached(): void {
    const socket = this.#socket
    this.#isGone = true
    this.#unhear()
    socket.on('error', () => socket.destroy()).pause()
    const early = this.#waiting.splice(0)
    if (early.length > 0) socket.unshift(Buffer.concat(early))
  }

  /**
   * Ends the connection. What is left of a body is read before it closes, when no more will come for the client: one that is closed
   * with unread data in it is reset, and the client sees an error instead of the answer (RFC 9112 §9.6).
   */
  #endWith(request: ServedRequest | undefined): void {
    this.#isEnding = true
    if (request === undefined || request.complete) return this.#socket.destroySoon()
    this.#socket.end()
    // Whoever was sending it on may give it up now.
    if (request.destroyed) request.dump()
    else request.once('close', () => request.dump()).resume()
  }

  readonly #onData = (bytes: Buffer): void => {
    // The rest of a body may be what is waited for before the connection closes.
    if ((this.#isEnding || this.#owner.isOver) && !this.#reader.isInBody) return
    if (this.#waiting.length === 0) return this.#read(bytes)
    this.#wait(bytes, this.#waiting.length)
  }

  #read(bytes: Buffer): void {
    const beganMs = this.#reader.isBetween ? performance.now() : undefined
    let unread: Buffer | undefined
    try {
      unread = this.#reader.read(bytes)
    } catch (error) {
      if (!(error instanceof WireError)) throw error
      this.#serve()
      return this.#fail(error)
    }
    // Empty lines before a request are nothing yet.
    if (beganMs !== undefined && !this.#reader.isBetween) this.#sinceMs = beganMs
    this.#serve()
    // What was read is all that came, or the first of what waits.
    if (unread !== undefined) this.#wait(unread, 0)
  }

  readonly #resume = (): void => {
    if (this.#socket.isPaused()) this.#socket.resume()
  }

  readonly #onDrain = (): void => this.#response?.drained()
  readonly #onError = (error: Error): void => this.#owner.onUnreadable(error)

  readonly #onEnd = (): void => {
    this.#hasEnded = true
    // Nothing else tells that its client has left.
    if (this.#request?.isUpgrade === true) this.#socket.destroy()
    else if (!this.#owner.isOver && this.#waiting.length === 0) this.#endRead()
  }

  /** The client has ended its side, and all that came before has been read. */
  #endRead(): void {
    if (this.#reader.isInBody) return this.#fail(malformed('the client ended its side within a body'))
    if (this.#reader.stop()) return this.#fail(malformed('the client ended its side within a head'))
    if (this.#response === undefined) this.#socket.end()
    else this.#response.isLast = true
  }

  readonly #onClose = (): void => {
    this.#isGone = true
    this.#reader.stop()
    this.#request?.destroy(new Error('aborted'))
    this.#response?.close()
  }

  /** Only now: what came of its body with the head is there when it is served. */
  #serve(): void {
    if (!this.#isPending || this.#request === undefined || this.#response === undefined) return
    this.#isPending = false
    this.#owner.take(this.#request, this.#response)
  }

  #fail(error: Error): void {
    this.#reader.stop()
    if (this.#isEnding) this.#socket.destroy()
    else this.#owner.onUnreadable(error)
  }

  #wait(bytes: Buffer, at: number): void {
    // It is answered, and nothing else is spoken.
    if (this.#request?.isUpgrade === true && this.#response?.headersSent !== false) return
    if (at === 0) this.#waiting.unshift(bytes)
    else this.#waiting.push(bytes)
    this.#waitingBytes += bytes.length
    this.#boundWaiting()
  }

  /** Reads what waits, up to the end of the next request. */
  #readWaiting(): void {
    while (!this.#reader.isHeld && !this.#isGone && !this.#owner.isOver) {
      const bytes = this.#waiting.shift()
      if (bytes === undefined) break
      this.#waitingBytes -= bytes.length
      this.#read(bytes)
    }
    if (this.#isGone || this.#owner.isOver) return
    this.#boundWaiting()
    if (this.#hasEnded && this.#waiting.length === 0) this.#endRead()
  }

  /** Nothing more is read while too much waits. */
  #boundWaiting(): void {
    if (this.#request?.isUpgrade === true) {
      if (this.#waitingBytes > MAX_EARLY_BYTES) this.#socket.destroy()
    } else this.#stall(this.#waitingBytes > MAX_WAITING_BYTES || this.#waiting.length > MAX_WAITING_PIECES)
  }

  #stall(isStalled: boolean): void {
    if (this.#isStalled === isStalled) return
    this.#isStalled = isStalled
    this.#owner.stall(isStalled)
  }
}

const timedOut = (): WireError => new WireError('WIRE_REQUEST_LATE', 'a request that does not come in time')
