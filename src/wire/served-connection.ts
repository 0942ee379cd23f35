import type { Socket } from 'node:net'
import type { ReceivedHead } from './received-head.ts'
import { RequestReader, type RequestSink, type Unread } from './request-reader.ts'
import { ServedRequest } from './served-request.ts'
import { type ResponseOwner, ServedResponse } from './served-response.ts'
import { hear } from './socket-events.ts'
import { WireError } from './wire-error.ts'

/** Bytes that are not taken and wait for the answers before them, and pieces of them; beyond it nothing more is read. */
const MAX_WAITING_BYTES = 64 * 1024
const MAX_WAITING_PIECES = 256

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
  /** Larger heads are handed over. */
  readonly maxHeadBytes: number
  /** Value of `Keep-Alive`; undefined for none. */
  readonly keepAlive: string | undefined
}

/** Who serves the requests of a connection. */
export interface ServedOwner {
  /** It answers nobody any more: what comes is thrown away, but for the rest of a body. */
  readonly isOver: boolean
  /** A request, in the order in which they came; the answer has its turn when those before it are out. */
  take(request: ServedRequest, response: ServedResponse): void
  /** What came can't be read, a deadline has passed, or the socket failed. */
  onUnreadable(error: Error): void
  /** Nobody reads on before this is called off. */
  stall(isStalled: boolean): void
  /**
   * Somebody asks for another protocol (CONNECT: undefined) before the answers before that are out. False:
   * it waits for them; otherwise the connection has been ended.
   */
  cutsBefore(upgrade: string | undefined): boolean
  /** From here on the socket is somebody else's, with these bytes first, and the end of the client's side if that has come. */
  handOver(bytes: Buffer, hasEnded: boolean): void
}

/**
 * Serves a connection for as long as its requests are what the strict grammar takes. The first bytes that are not are handed
 * over unread, with the socket, when the answers before them are out.
 */
export class ServedConnection implements RequestSink, ResponseOwner {
  readonly keepAlive: string | undefined
  readonly #socket: Socket
  readonly #owner: ServedOwner
  readonly #deadlines: ServedDeadlines
  readonly #reader: RequestReader
  readonly #unhear: () => void
  /** Those whose answers are not out, in their order. */
  readonly #requests: ServedRequest[] = []
  readonly #responses: ServedResponse[] = []
  /** What was read last, until the bytes that came with it have been. */
  #read: ServedRequest | undefined = undefined
  #pending: ServedResponse | undefined = undefined
  #waiting: Buffer[] | undefined = undefined
  #waitingBytes = 0
  #hasEnded = false
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
    if (this.#isGone || this.#owner.isOver || this.#waiting !== undefined) return
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
    if (!this.#isGone && this.#responses.length === 0 && this.#reader.isBetween) this.#socket.destroy()
  }

  onHead(head: ReceivedHead): void {
    this.#serve()
    const request = new ServedRequest(head, this.#socket, this.#resume)
    const response = new ServedResponse(head.method === 'HEAD', head.keeps, this)
    if (this.#responses.length === 0) response.assignSocket(this.#socket)
    this.#requests.push(request)
    this.#responses.push(response)
    this.#read = request
    this.#pending = response
    this.#isIdle = false
  }

  onBody(data: Buffer): void {
    if (this.#read?.receive(data) === false) this.#socket.pause()
  }

  onEnd(): void {
    this.#read?.receiveEnd()
    // Its reader may not have taken all of it yet, and asks for nothing more.
    this.#resume()
    this.#sinceMs = performance.now()
    if (this.#responses.length > 0) return
    this.#read = undefined
    this.#rest()
  }

  onAnswered(response: ServedResponse): void {
    const request = this.#requests.shift()
    this.#responses.shift()
    response.detachSocket()
    if (request?.complete === false) request.dump()
    // An idle connection holds nothing of its last request.
    else if (this.#read === request) this.#read = undefined
    const [next] = this.#responses
    const { keeps } = response
    if (!keeps) this.#socket.destroySoon()
    else if (next !== undefined) next.assignSocket(this.#socket)
    else if (request?.complete === true) this.#rest()
    response.close()
    // Only now: whoever waited for this end may have ended the connection with it.
    if (keeps && next === undefined && this.#waiting !== undefined && this.#socket.writable)
      this.#handOver(Buffer.concat(this.#waiting))
  }

  readonly #onData = (bytes: Buffer): void => {
    // The rest of a body may be what is waited for before the connection closes.
    if (this.#owner.isOver && !this.#reader.isInBody) return
    if (this.#waiting !== undefined) return this.#wait(bytes)
    this.#isFresh = false
    if (this.#reader.isBetween) this.#sinceMs = performance.now()
    let unread: Unread | undefined
    try {
      unread = this.#reader.read(bytes)
    } catch (error) {
      if (!(error instanceof WireError)) throw error
      this.#serve()
      return this.#fail(error)
    }
    this.#serve()
    if (unread !== undefined) this.#strange(unread)
  }

  readonly #resume = (): void => {
    if (this.#socket.isPaused()) this.#socket.resume()
  }

  readonly #onDrain = (): void => this.#responses[0]?.drained()
  readonly #onError = (error: Error): void => this.#owner.onUnreadable(error)

  readonly #onEnd = (): void => {
    this.#hasEnded = true
    if (this.#waiting !== undefined || this.#owner.isOver) return
    if (this.#reader.isInBody) return this.#fail(new Error('the client ended its side within a body'))
    const head = this.#reader.stop()
    const last = this.#responses.at(-1)
    if (head.length > 0) this.#strange({ why: 'strange', bytes: head })
    else if (last === undefined) this.#socket.end()
    else last.isLast = true
  }

  readonly #onClose = (): void => {
    this.#isGone = true
    this.#reader.stop()
    const [response] = this.#responses
    for (const request of this.#requests) request.destroy(new Error('aborted'))
    response?.close()
  }

  /** Only now: what came of its body with the head is there when it is served. */
  #serve(): void {
    const response = this.#pending
    const request = this.#read
    if (response === undefined || request === undefined) return
    this.#pending = undefined
    this.#owner.take(request, response)
  }

  /** Between two requests. */
  #rest(): void {
    if (!this.#reader.isBetween) return
    this.#isIdle = true
    this.#sinceMs = performance.now()
  }

  #fail(error: Error): void {
    this.#reader.stop()
    this.#owner.onUnreadable(error)
  }

  #strange({ why, bytes }: Unread): void {
    if (this.#owner.isOver) return
    if (this.#responses.length === 0) return this.#handOver(bytes)
    // Whatever was said in another protocol would land in the middle of the answers before it.
    if (why !== 'strange' && this.#owner.cutsBefore(why === 'connect' ? undefined : why.upgrade)) return
    this.#waiting = []
    this.#wait(bytes)
  }

  #wait(bytes: Buffer): void {
    this.#waiting?.push(bytes)
    this.#waitingBytes += bytes.length
    if (this.#waitingBytes > MAX_WAITING_BYTES || (this.#waiting?.length ?? 0) > MAX_WAITING_PIECES)
      this.#owner.stall(true)
  }

  #handOver(bytes: Buffer): void {
    this.#isGone = true
    this.#waiting = undefined
    this.#unhear()
    // Came while nobody took it. Node reads the rest past the stream, so that whatever is left in there would come later.
    const held = this.#socket.readableLength > 0 ? (this.#socket.read() as Buffer | null) : null
    this.#owner.stall(false)
    this.#owner.handOver(held === null ? bytes : Buffer.concat([bytes, held]), this.#hasEnded)
  }
}

const timedOut = (): Error => Object.assign(new Error('request timeout'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' })
