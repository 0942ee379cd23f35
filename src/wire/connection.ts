import type { Socket } from 'node:net'
import type { AnswerHead } from './answer-head.ts'
import { AnswerReader, type AnswerSink } from './answer-reader.ts'
import type { BodyOwner, BodySender } from './body-sender.ts'
import { Deadline } from './deadline.ts'
import type { Exchange, ExchangePlace } from './exchange.ts'
import type { Framing } from './framing.ts'
import { sendRequest } from './send-request.ts'
import { hear } from './socket-events.ts'
import { malformed, WireError } from './wire-error.ts'

/** Time limits of an exchange, in milliseconds; 0 = none. */
export interface ExchangeBounds {
  /** From the end of the request, or of its transfer, to the head of the response. */
  readonly firstByteMs: number
  /** Maximum silence within the response while it is being read. */
  readonly idleMs: number
}

/** The pool that owns the connections. */
export interface ConnectionOwner {
  readonly bounds: ExchangeBounds
  /** The connection may be reused, for so many milliseconds; undefined: the peer did not specify it. */
  free(connection: WireConnection, keepMs: number | undefined): void
  /** The connection is no longer used. Called once. */
  lost(connection: WireConnection): void
}

/** One connection to a peer, with one exchange at a time. */
export class WireConnection implements AnswerSink, BodyOwner, ExchangePlace {
  readonly #socket: Socket
  readonly #owner: ConnectionOwner
  readonly #reader = new AnswerReader(this)
  readonly #deadline: Deadline
  readonly #unhear: () => void
  #exchange: Exchange | undefined
  /** Whether the request was sent: its text is released while the response streams. */
  #isSent = false
  #isUpgrade = false
  #keeps = false
  #sender: BodySender | undefined
  #framing: Framing | undefined
  #switched: AnswerHead | undefined
  #isLost = false
  /** Time until which the owner may reuse it. */
  keptUntilMs = 0

  constructor(socket: Socket, owner: ConnectionOwner) {
    this.#socket = socket
    this.#owner = owner
    const { firstByteMs, idleMs } = owner.bounds
    this.#deadline = new Deadline(Math.min(firstByteMs || Infinity, idleMs || Infinity, 2 ** 31 - 1), this.#onLate)
    socket.setNoDelay(true)
    this.#unhear = hear(socket, {
      onData: this.#onData,
      onEnd: this.#onEnd,
      onError: this.#onError,
      onClose: this.#onClose,
      onDrain: this.#onDrain,
    })
  }

  /** Whether it is open and no unrequested data has arrived. */
  get isUsable(): boolean {
    const socket = this.#socket
    return !this.#isLost && !socket.destroyed && socket.writable && !socket.readableEnded
  }

  /** Starts an exchange. The connection must be free. */
  begin(exchange: Exchange): void {
    const { request } = exchange
    if (request === undefined) return this.#owner.free(this, undefined)
    this.#exchange = exchange
    exchange.place = this
    exchange.request = undefined
    try {
      exchange.handler.onRequestStart(exchange)
    } catch (error) {
      exchange.abort(error as Error)
    }
    if (this.#exchange !== exchange) return
    this.#isSent = true
    this.#isUpgrade = request.isUpgrade
    this.#keeps = request.keeps
    this.#framing = undefined
    this.#reader.expect(request.isHead)
    this.#sender = sendRequest(this.#socket, request, this)
    if (this.#sender === undefined) this.#deadline.set(this.#owner.bounds.firstByteMs)
  }

  /** Aborts `exchange` if it is still running. */
  abort(exchange: Exchange, reason: Error): void {
    if (this.#exchange !== exchange) return
    if (this.#isSent) return this.#fail(reason)
    // Nothing was written, so the connection is unaffected.
    this.#exchange = exchange.place = undefined
    this.#owner.free(this, undefined)
    exchange.handler.onResponseError(exchange, reason)
  }

  pause(exchange: Exchange): void {
    if (this.#exchange !== exchange) return
    this.#socket.pause()
    this.#deadline.clear()
  }

  resume(exchange: Exchange): void {
    if (this.#exchange !== exchange || !this.#socket.isPaused()) return
    this.#socket.resume()
    this.#deadline.set(this.#framing === undefined ? this.#owner.bounds.firstByteMs : this.#owner.bounds.idleMs)
  }

  /** Closes the connection, and fails the exchange with `reason`. */
  destroy(reason: Error): void {
    if (this.#exchange === undefined) this.#lose()
    else this.#fail(reason)
  }

  onHead(head: AnswerHead, framing: Framing): boolean {
    const exchange = this.#exchange
    const { status, fields } = head
    if (exchange === undefined) return false
    if (status === 101) {
      if (!this.#isUpgrade || fields['upgrade'] === undefined) throw malformed('an upgrade that was not asked for')
      this.#switched = head
      return false
    }
    // One deadline for the final head, regardless of interim ones.
    if (status >= 200) {
      this.#framing = framing
      this.#deadline.set(this.#owner.bounds.idleMs)
    }
    exchange.handler.onResponseStart(exchange, status, fields)
    return this.#exchange === exchange
  }

  onBody(data: Buffer): boolean {
    const exchange = this.#exchange
    if (exchange === undefined) return false
    exchange.handler.onResponseData(exchange, data)
    return this.#exchange === exchange
  }

  onEnd(): void {
    const exchange = this.#exchange
    const keepMs = this.#framing?.keepMs
    if (exchange === undefined) return
    // A response before the end of its request leaves the peer in the middle of reading.
    const isWhole = this.#sender === undefined || this.#sender.isOver
    const isKept = isWhole && this.#keeps && keepMs !== 0
    this.#over()
    if (isKept && this.isUsable) {
      if (this.#socket.isPaused()) this.#socket.resume()
      this.#owner.free(this, keepMs)
    } else this.#lose()
    try {
      exchange.handler.onResponseEnd(exchange)
    } catch (error) {
      exchange.handler.onResponseError(exchange, error as Error)
    }
  }

  onBodyStall(isStalled: boolean): void {
    if (this.#framing !== undefined) return
    if (isStalled) this.#deadline.set(this.#owner.bounds.firstByteMs)
    else this.#deadline.clear()
  }

  onBodyEnd(): void {
    if (this.#framing === undefined) this.#deadline.set(this.#owner.bounds.firstByteMs)
  }

  onBodyError(error: Error): void {
    this.#fail(error)
  }

  readonly #onData = (bytes: Buffer): void => {
    // An unrequested response must not become the response to the next request.
    if (this.#exchange === undefined) return this.#lose()
    let rest: Buffer
    try {
      rest = this.#reader.read(bytes)
    } catch (error) {
      return this.#failLater(error as Error)
    }
    if (this.#switched !== undefined) return this.#switch(this.#switched, rest)
    if (rest.length > 0) return this.destroy(malformed('more than an answer'))
    if (this.#framing !== undefined && this.#exchange !== undefined && !this.#socket.isPaused())
      this.#deadline.set(this.#owner.bounds.idleMs)
  }

  readonly #onEnd = (): void => {
    if (!this.#reader.end()) this.destroy(closed())
  }

  readonly #onError = (error: Error): void => this.destroy(error)
  readonly #onClose = (): void => this.destroy(closed())
  readonly #onDrain = (): void => this.#sender?.drained()

  readonly #onLate = (): void => {
    this.destroy(
      this.#framing === undefined
        ? new WireError('WIRE_FIRST_BYTE', 'no answer in time')
        : new WireError('WIRE_IDLE', 'silence within the answer'),
    )
  }

  /** Hands over the socket. */
  #switch(head: AnswerHead, rest: Buffer): void {
    const exchange = this.#exchange
    const socket = this.#socket
    this.#switched = undefined
    if (exchange === undefined) return
    if (exchange.handler.onRequestUpgrade === undefined) return this.#fail(malformed('an unexpected upgrade'))
    this.#over()
    this.#forget()
    socket.pause()
    this.#unhear()
    if (rest.length > 0) socket.unshift(rest)
    try {
      exchange.handler.onRequestUpgrade(exchange, head.status, head.fields, socket)
    } catch (error) {
      socket.destroy()
      exchange.handler.onResponseError(exchange, error as Error)
    }
  }

  #fail(error: Error): void {
    const exchange = this.#exchange
    this.#over()
    this.#lose()
    exchange?.handler.onResponseError(exchange, error)
  }

  /** Valid data of these bytes is delivered before the error. */
  #failLater(error: Error): void {
    const exchange = this.#exchange
    this.#over()
    this.#lose()
    if (exchange !== undefined) process.nextTick(() => exchange.handler.onResponseError(exchange, error))
  }

  /** Ends the exchange, with any result. */
  #over(): void {
    this.#sender?.stop()
    this.#reader.stop()
    this.#deadline.clear()
    this.#sender = undefined
    if (this.#exchange !== undefined) this.#exchange.place = undefined
    this.#exchange = undefined
    this.#isSent = false
  }

  #lose(): void {
    this.#socket.destroy()
    this.#forget()
  }

  #forget(): void {
    if (this.#isLost) return
    this.#isLost = true
    this.#deadline.stop()
    this.#owner.lost(this)
  }
}

const closed = (): WireError => new WireError('WIRE_CLOSED', 'the connection was closed before the answer was whole')
