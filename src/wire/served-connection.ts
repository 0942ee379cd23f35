import type { Socket } from 'node:net'
import { type MonotonicMs, monotonicNow } from '../core/index.ts'
import type { ReceivedHead } from './received-head.ts'
import { RequestReader, type RequestSink } from './request-reader.ts'
import { ServedRequest } from './served-request.ts'
import { type ResponseOwner, ServedResponse } from './served-response.ts'
import { hear } from './socket-events.ts'
import { malformed, WireError } from './wire-error.ts'

/** Maximum bytes and pieces queued behind the current request; then reading pauses. */
const MAX_WAITING_BYTES = 64 * 1024
const MAX_WAITING_PIECES = 256
/** Maximum bytes of another protocol before the backend has accepted it; more closes the connection. */
const MAX_EARLY_BYTES = 128 * 1024

/** Time limits for clients, in milliseconds. */
export interface ServedDeadlines {
  /** For a head. */
  readonly headersMs: number
  /** For a whole request; 0 = none. */
  readonly requestMs: number
  /** Between requests; 0 = none. */
  readonly keepAliveMs: number
}

export interface ServedOptions {
  readonly deadlines: ServedDeadlines
  /** Larger heads are rejected. */
  readonly maxHeadBytes: number
  /** Value of `Keep-Alive`; undefined for none. */
  readonly keepAlive: string | undefined
}

/** The owner of a connection, which serves its requests. */
export interface ServedOwner {
  /** No more requests are answered: input is discarded, except the rest of a body. */
  readonly isOver: boolean
  /** Whether this protocol may follow the request; otherwise it is an ordinary request. */
  servesUpgrade(upgrade: string): boolean
  /** Serves a request, after the previous response was sent. */
  take(request: ServedRequest, response: ServedResponse): void
  /** Unreadable input, a missed deadline, or a socket error. */
  onUnreadable(error: Error): void
  /** Pauses or resumes all reading. */
  stall(isStalled: boolean): void
}

/** Serves the requests of a connection sequentially, however many arrive at once. */
export class ServedConnection implements RequestSink, ResponseOwner {
  readonly keepAlive: string | undefined
  readonly #socket: Socket
  readonly #owner: ServedOwner
  readonly #deadlines: ServedDeadlines
  readonly #reader: RequestReader
  readonly #unhear: () => void
  /** The last request read; kept until it is complete and answered, and all its data has been read. */
  #request: ServedRequest | undefined = undefined
  /** Kept until it is sent. */
  #response: ServedResponse | undefined = undefined
  /** It is served after the data that arrived with its head was read. */
  #isPending = false
  /** Data behind the current request. */
  readonly #waiting: Buffer[] = []
  #waitingBytes = 0
  #isStalled = false
  #hasEnded = false
  /** The last response was sent. */
  #isEnding = false
  #isGone = false
  /** Start of the current request or of waiting for one. */
  #sinceMs = monotonicNow()
  /** No byte has been received. */
  #isFresh = true
  /** No data since the last response. */
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
  look(nowMs: MonotonicMs): void {
    if (this.#isGone || this.#isEnding || this.#owner.isOver) return
    const { headersMs, requestMs, keepAliveMs } = this.#deadlines
    const sinceMs = nowMs - this.#sinceMs
    if (this.#reader.isInBody) {
      if (requestMs > 0 && sinceMs >= requestMs) this.#fail(timedOut())
    } else if (this.#isFresh || this.#reader.isInHead) {
      if (sinceMs >= headersMs) this.#fail(timedOut())
    } else if (this.#isIdle && keepAliveMs > 0 && sinceMs >= keepAliveMs) this.#socket.destroy()
  }

  /** Closes the connection if it is idle. */
  closeIdle(): void {
    // Data behind the current request is not read.
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
    // Its reader may not have consumed all of it, and requests no more.
    this.#resume()
    this.#sinceMs = monotonicNow()
    if (this.#isEnding) this.#socket.destroySoon()
    if (this.#isEnding || this.#response !== undefined) return false
    this.#request = undefined
    this.#isIdle = true
    return true
  }

  onAnswered(response: ServedResponse): void {
    const request = this.#request
    this.#response = undefined
    response.release()
    const { keeps } = response
    if (!keeps) this.#endWith(request)
    else if (request?.complete === false) request.dump()
    else {
      // An idle connection releases its last request.
      this.#request = undefined
      this.#reader.next()
      this.#isIdle = true
      this.#sinceMs = monotonicNow()
    }
    response.close()
    // Last, because a listener for this end may have closed the connection.
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
   * Closes the connection. The rest of a body is read before, without a client waiting for it: closing with unread
   * data resets the connection, and the client sees an error instead of the response (RFC 9112 §9.6).
   */
  #endWith(request: ServedRequest | undefined): void {
    this.#isEnding = true
    if (request === undefined || request.complete) return this.#socket.destroySoon()
    this.#socket.end()
    // The consumer of the body may stop now.
    if (request.destroyed) request.dump()
    else request.once('close', () => request.dump()).resume()
  }

  readonly #onData = (bytes: Buffer): void => {
    // The close may be waiting for the rest of a body.
    if ((this.#isEnding || this.#owner.isOver) && !this.#reader.isInBody) return
    if (this.#waiting.length === 0) return this.#read(bytes)
    this.#wait(bytes, this.#waiting.length)
  }

  #read(bytes: Buffer): void {
    const beganMs = this.#reader.isBetween ? monotonicNow() : undefined
    let unread: Buffer | undefined
    try {
      unread = this.#reader.read(bytes)
    } catch (error) {
      if (!(error instanceof WireError)) throw error
      this.#serve()
      return this.#fail(error)
    }
    // Empty lines before a request do not count.
    if (beganMs !== undefined && !this.#reader.isBetween) this.#sinceMs = beganMs
    this.#serve()
    // The rest is all new data, or the first of the queued data.
    if (unread !== undefined) this.#wait(unread, 0)
  }

  readonly #resume = (): void => {
    if (this.#socket.isPaused()) this.#socket.resume()
  }

  readonly #onDrain = (): void => this.#response?.drained()
  readonly #onError = (error: Error): void => this.#owner.onUnreadable(error)

  readonly #onEnd = (): void => {
    this.#hasEnded = true
    // Nothing else reports that the client has disconnected.
    if (this.#request?.isUpgrade === true) this.#socket.destroy()
    else if (!this.#owner.isOver && this.#waiting.length === 0) this.#endRead()
  }

  /** The client half-closed, and all data before has been read. */
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

  /** Deferred, so that body data that arrived with the head is available. */
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
    // It is answered without an upgrade.
    if (this.#request?.isUpgrade === true && this.#response?.headersSent !== false) return
    if (at === 0) this.#waiting.unshift(bytes)
    else this.#waiting.push(bytes)
    this.#waitingBytes += bytes.length
    this.#boundWaiting()
  }

  /** Reads queued data, up to the end of the next request. */
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

  /** Pauses reading while too much is queued. */
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
