import {
  type Again,
  type AnswerFilter,
  asFailure,
  type Body,
  type ClientRequest,
  type ClientResponse,
  Failure,
  type Inbound,
  type Outcome,
  type RequestTrace,
  type Sealed,
} from '../core/index.ts'
import { type ParsedHeaders, removeHeaders, type ResponseHead } from '../http/index.ts'
import { judgeBody, PEEK_BYTES, type Rejection } from './aws-rejection.ts'
import { credentialTexts } from './credential-texts.ts'
import { failureOf, isConnectionLost, isIdempotent, abortedBy } from './failure-of.ts'
import { sendInterim } from './interim.ts'
import { EventStreamWriter } from './event-stream-writer.ts'
import type { ForwardRoute } from './route.ts'
import { type ExchangeControl, type ExchangeHandler, type Exchanges, refusedByProxy } from '../net/index.ts'
import { type Disposition, dispositionOf, unusableAnswer } from './disposition.ts'

/** Logged status of a request whose client disconnected before the response. */
export const CLIENT_GONE_STATUS = 499
/** Bytes of a discarded response to read, so that its connection can be reused. */
const DISCARD_BYTES = 64 * 1024
const DISCARD_MS = 1000
/** Maximum number of interim responses per request. */
const MAX_INTERIM = 32
// Abort reasons. Their stack is not used, so they are created once.
const CLIENT_GONE = new Error('client gone')
const DISCARDED = new Error('response discarded')
const STREAM_ENDED = new Error('stream ended')

/**
 * Relays one request to a backend and its response, without buffering and with backpressure. If either side
 * disconnects, both are closed. Settles its promise exactly once.
 */
export class Relay implements ExchangeHandler {
  protected readonly route: ForwardRoute
  protected readonly sealed: Sealed
  protected readonly inbound: Inbound
  protected readonly response: ClientResponse
  readonly #resolve: (outcome: Outcome) => void
  readonly #reject: (failure: unknown) => void
  #control: ExchangeControl | undefined
  /** Connected, and at least a part of the request was sent. */
  #isSent = false
  #isOver = false
  #isSettled = false
  /** The response head is written: errors can only close the connection. */
  #isStreaming = false
  #hasBody = false
  /** Length of an announced body before its first byte. */
  #announced = -1
  #isPaused = false
  /** What arrived while the response waits for the audit trail. */
  #waiting: (() => void)[] | undefined
  #status = 0
  #headers: ParsedHeaders = {}
  #filter: AnswerFilter | undefined
  /** The head, while a filter decides whether to send the response. */
  #pending: { readonly head: ResponseHead; readonly location: string | undefined } | undefined
  #firstByteAtMs = 0
  /** For an event stream to which something may be added. */
  #events: EventStreamWriter | undefined
  #peek: { head: ResponseHead; rejection: Rejection; chunks: Buffer[]; length: number } | undefined
  #discarded = 0
  #interim = 0
  readonly #onClose = (): void => this.#clientClosed()

  constructor(
    route: ForwardRoute,
    sealed: Sealed,
    resolve: (outcome: Outcome) => void,
    reject: (failure: unknown) => void,
  ) {
    this.route = route
    this.sealed = sealed
    this.inbound = sealed.inbound
    this.response = this.inbound.response
    this.#resolve = resolve
    this.#reject = reject
  }

  /** Sends the request, and starts to watch for disconnects and rejections of its body. */
  start(exchanges: Exchanges, upgrade: string | undefined): void {
    const { body, headers, method, path } = this.sealed
    const { inbound } = this
    this.response.on('close', this.#onClose)
    inbound.onRefused = this.#onClose
    if (inbound.gone || this.response.destroyed) return this.#clientClosed()
    inbound.holdBody()
    const control = exchanges.dispatch(
      { path, method, headers, body: payloadOf(body), ...(upgrade === undefined ? undefined : { upgrade }) },
      this,
    )
    this.#control ??= control
  }

  onRequestStart(control: ExchangeControl): void {
    this.#control = control
    this.#isSent = true
    if (this.inbound.trace !== undefined) traceSending(this.inbound.trace, this.sealed.body)
  }

  onResponseStart(controller: ExchangeControl, status: number, headers: ParsedHeaders): void {
    if (this.#isSettled) return
    const unusable = unusableAnswer(status, headers)
    if (unusable !== undefined) return controller.abort(unusable)
    if (status < 200) return this.#inform(controller, status, headers)
    // Only an intermediate proxy returns 407, about its own configuration and not the backend's.
    if (status === 407 && this.route.forwarder !== undefined)
      return controller.abort(refusedByProxy(this.route.forwarder, status))
    this.#status = status
    this.#headers = headers
    this.#firstByteAtMs = this.route.clock.now()
    this.inbound.trace?.received(status, headers)
    const length = headers['content-length']
    if (length !== undefined) this.#announced = Number(length)
    const head = this.route.responsePolicy(headers, status, credentialTexts(this.sealed))
    this.#follow(dispositionOf(status, headers, head, this.route, this.sealed), head, controller)
  }

  onResponseData(controller: ExchangeControl, chunk: Buffer): void {
    if (this.#waiting !== undefined) return void this.#waiting.push(() => this.onResponseData(controller, chunk))
    if (this.#filter !== undefined) this.#filtered(controller, chunk)
    else if (this.#isStreaming) this.#write(controller, chunk)
    else if (this.#peek !== undefined) this.#collect(controller, chunk)
    else if ((this.#discarded += chunk.length) > DISCARD_BYTES) controller.abort(DISCARDED)
  }

  onResponseEnd(controller: ExchangeControl): void {
    if (this.#waiting !== undefined) return void this.#waiting.push(() => this.onResponseEnd(controller))
    this.#over()
    if (this.#peek !== undefined) this.#decide(controller)
    if (this.#filter !== undefined && !this.#filtersEnd(controller, this.#filter)) return
    if (!this.#isStreaming || this.#isSettled) return
    // Trailers are dropped: they would bypass the header policy.
    if (!this.response.writableEnded) this.response.end()
    this.#done(false)
  }

  onResponseError(controller: ExchangeControl | undefined, error: Error): void {
    if (this.#waiting !== undefined) return void this.#waiting.push(() => this.onResponseError(controller, error))
    this.#over()
    if (this.#isSettled) return
    if (this.response.writableEnded) return this.#done(false)
    if (this.#isStreaming) {
      // Not a clean end: the client must detect an incomplete response.
      this.response.destroy()
      return this.#done(true, abortedBy(error, this.route.timeouts, this.route.target.origin))
    }
    if (this.#status !== 0) return this.#fail(abortedBy(error, this.route.timeouts, this.route.target.origin))
    // Nothing was received. A failed connect is not a lost connection, and a retry would not help.
    const failure = failureOf(error, this.#isSent, this.route.timeouts, this.route.target.origin)
    const { body, method } = this.sealed
    const mayRepeat = body.kind !== 'stream' && isIdempotent(method)
    if (this.#isSent && mayRepeat && isConnectionLost(error)) {
      return this.#again({ reason: 'connection_lost', failure })
    }
    this.#fail(failure)
  }

  /** Headers of the response with `status`; `settle` follows. The proxy's own headers are last. */
  protected headersFor(head: ResponseHead, location: string | undefined): string[] {
    const { headers, sessionId } = head
    if (location !== undefined) headers.push('location', location)
    if (sessionId !== undefined) {
      const bind = this.sealed.armed.known.matched.sessionToClient
      headers.push('mcp-session-id', bind === undefined ? sessionId : bind(sessionId))
    }
    for (const text of this.inbound.responseHeaders) headers.push(text)
    return headers
  }

  /** Detaches from the response: closing its connection no longer means that the client has left. */
  protected leaveResponse(): void {
    this.#over()
    this.response.off('close', this.#onClose)
  }

  /** Completes the request. */
  protected settle(status: number, aborted: boolean): void {
    this.#status = status
    if (this.#firstByteAtMs === 0) this.#firstByteAtMs = this.route.clock.now()
    this.#done(aborted)
  }

  #follow(disposition: Disposition, head: ResponseHead, controller: ExchangeControl): void {
    if (disposition.kind === 'stream') return this.#admit(head, disposition.location, controller)
    if (disposition.kind === 'peek') {
      this.#peek = { head, rejection: disposition.rejection, chunks: [], length: 0 }
      return
    }
    if (disposition.kind === 'again') this.#again(disposition.again)
    else this.#fail(disposition.failure)
    this.#discardRest(controller)
  }

  /** Accepts a response for the client when it may be sent; what arrives meanwhile waits. */
  #admit(head: ResponseHead, location: string | undefined, controller: ExchangeControl): void {
    const admitted = this.inbound.trace?.beforeResponse?.(this.#status)
    if (admitted === undefined) return this.#accept(head, location, controller)
    const waiting: (() => void)[] = []
    this.#waiting = waiting
    controller.pause()
    const resume = (act: () => void): void => {
      this.#waiting = undefined
      if (!this.#isSettled) act()
      controller.resume()
      for (const one of waiting) one()
    }
    admitted.then(
      () => resume(() => this.#accept(head, location, controller)),
      (error: unknown) =>
        resume(() => {
          this.#fail(asFailure(error))
          this.#discardRest(controller)
        }),
    )
  }

  /** Accepts a response for the client; a filter may delay it. */
  #accept(head: ResponseHead, location: string | undefined, controller: ExchangeControl): void {
    try {
      this.#filter = this.sealed.armed.known.matched.filterAnswer?.(this.#status, this.#headers)
    } catch (error) {
      this.#fail(asFailure(error))
      return this.#discardRest(controller)
    }
    if (this.#filter !== undefined && !this.#filter.isExact) {
      removeHeaders(head.headers, OF_EXACT_BODY)
      this.#announced = -1
    }
    if (this.#filter?.isHeld === true) this.#pending = { head, location }
    else this.#begin(head, location)
  }

  #filtered(controller: ExchangeControl, chunk: Buffer): void {
    if (this.#isSettled || this.#filter === undefined) return
    try {
      const out = this.#filter.push(chunk)
      if (out.length > 0) this.#passOn(controller, out)
    } catch (error) {
      this.#refuseRest(controller, asFailure(error))
    }
  }

  /** False if the response is not sent, or not completely. */
  #filtersEnd(controller: ExchangeControl, filter: AnswerFilter): boolean {
    if (this.#isSettled) return false
    try {
      const out = filter.end()
      if (this.#pending !== undefined) this.#pending.head.headers.push('content-length', String(out.length))
      if (this.#pending !== undefined || out.length > 0) this.#passOn(controller, out)
      return true
    } catch (error) {
      this.#refuseRest(controller, asFailure(error))
      return false
    }
  }

  #passOn(controller: ExchangeControl, out: Buffer): void {
    const pending = this.#pending
    this.#pending = undefined
    if (pending !== undefined) this.#begin(pending.head, pending.location)
    if (out.length > 0) this.#write(controller, out)
  }

  /** Received data must not be sent: returns a failure while the head is pending, else aborts the response. */
  #refuseRest(controller: ExchangeControl, failure: Failure): void {
    if (!this.#isStreaming) this.#fail(failure)
    else {
      this.response.destroy()
      this.#done(true, failure)
    }
    controller.abort(DISCARDED)
  }

  #begin(head: ResponseHead, location: string | undefined): void {
    const { response, sealed } = this
    const headers = this.headersFor(head, location)
    // The backend responded early: the rest of the request body would block the next request on this connection.
    if (sealed.body.kind === 'stream' && !sealed.body.stream.complete) headers.push('connection', 'close')
    response.writeHead(this.#status, headers)
    this.inbound.trace?.responded(this.#status, headers)
    this.#isStreaming = true
    if (head.isEvents) this.#beginEvents(headers)
    // An available body is sent with the head in one packet; otherwise, the head does not wait.
    else process.nextTick(flushHead, this)
  }

  #beginEvents(headers: readonly string[]): void {
    this.response.flushHeaders()
    const { sseKeepAlive: keepAliveMs } = this.route
    const { insertEvents } = this.sealed.armed.known.matched
    const isExact = headers.includes('content-encoding') || headers.includes('content-length')
    if ((keepAliveMs > 0 || insertEvents !== undefined) && !isExact)
      this.#events = new EventStreamWriter(this.response, { keepAliveMs, insertEvents, trace: this.inbound.trace })
    this.inbound.onStream(() => this.#endStream())
  }

  /** Sends the head of a stream if no body has arrived. */
  flush(): void {
    if (!this.#hasBody && !this.response.writableEnded) this.response.flushHeaders()
  }

  #write(controller: ExchangeControl, chunk: Buffer): void {
    if (this.#isSettled) return
    this.#hasBody = true
    this.inbound.trace?.body(chunk)
    // Most responses arrive in one piece, so that head, body and end are one write.
    if (chunk.length === this.#announced) return void this.response.end(chunk)
    this.#announced = -1
    if (!(this.#events ?? this.response).write(chunk)) this.#waitForDrain(controller)
  }

  #waitForDrain(controller: ExchangeControl): void {
    if (this.#isPaused) return
    this.#isPaused = true
    controller.pause()
    this.response.once('drain', () => {
      this.#isPaused = false
      controller.resume()
    })
  }

  #collect(controller: ExchangeControl, chunk: Buffer): void {
    const peek = this.#peek
    if (peek === undefined) return
    peek.chunks.push(chunk)
    peek.length += chunk.length
    if (peek.length >= PEEK_BYTES) this.#decide(controller)
  }

  /** Decides whether delayed data are forwarded or dropped. */
  #decide(controller: ExchangeControl): void {
    const peek = this.#peek
    if (peek === undefined) return
    this.#peek = undefined
    const again = judgeBody(peek.rejection, Buffer.concat(peek.chunks))
    if (again !== undefined) {
      this.#discardRest(controller)
      return this.#again(again)
    }
    this.#admit(peek.head, peek.head.location, controller)
    for (const chunk of peek.chunks) this.onResponseData(controller, chunk)
  }

  /**
   * Discards the response after reading a little, so that the connection can be reused. Not while the request body is
   * being sent: aborting that later could affect its next user.
   */
  #discardRest(controller: ExchangeControl): void {
    const { body } = this.sealed
    if (body.kind === 'stream' && !body.stream.complete) return controller.abort(DISCARDED)
    const timer = setTimeout(() => controller.abort(DISCARDED), DISCARD_MS)
    timer.unref()
  }

  #inform(controller: ExchangeControl, status: number, headers: ParsedHeaders): void {
    if (++this.#interim > MAX_INTERIM) {
      return controller.abort(new Failure('backend_error', { detail: 'too many interim responses' }))
    }
    sendInterim(this.inbound, status, headers, credentialTexts(this.sealed))
  }

  #endStream(): void {
    if (this.#isSettled) return
    this.response.end()
    this.#done(false)
    this.#control?.abort(STREAM_ENDED)
  }

  #clientClosed(): void {
    if (this.#isSettled || this.response.writableEnded) return
    if (this.#status === 0) this.#status = CLIENT_GONE_STATUS
    this.#done(true)
    this.#control?.abort(CLIENT_GONE)
  }

  /** The exchange has released the request and its body. */
  #over(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.inbound.releaseBody()
  }

  #release(): void {
    this.#isSettled = true
    this.response.off('close', this.#onClose)
    this.#events?.stop()
  }

  #done(aborted: boolean, torn?: Failure): void {
    // The response is complete, so its listener may stay.
    this.#isSettled = true
    this.#events?.stop()
    this.#resolve({ done: true, status: this.#status, firstByteAtMs: this.#firstByteAtMs, aborted, torn })
  }

  #again(again: Again): void {
    this.#release()
    this.#resolve({ done: false, again })
  }

  #fail(failure: Failure): void {
    this.#release()
    this.#reject(failure)
  }
}

const payloadOf = (body: Body): Buffer | ClientRequest | null =>
  body.kind === 'stream' ? body.stream : body.kind === 'kept' ? body.bytes : null

/** Exchanges start to read a streamed body in this turn: a listener added here misses nothing. */
function traceSending(trace: RequestTrace, body: Body): void {
  trace.sending()
  if (body.kind === 'stream' && trace.requestBody !== undefined)
    body.stream.on('data', (chunk: Buffer) => trace.requestBody?.(chunk))
}

/** Headers about a body that is forwarded unchanged. */
const OF_EXACT_BODY: ReadonlySet<string> = new Set([
  'content-length',
  'content-md5',
  'digest',
  'content-digest',
  'repr-digest',
  'etag',
  'accept-ranges',
])

const flushHead = (relay: Relay): void => relay.flush()
