import type { Socket } from 'node:net'
import type {
  Body,
  Caller,
  ClientRequest,
  ClientResponse,
  Clock,
  EpochMs,
  Failure,
  Inbound,
  Known,
  LocalHandler,
  ReachedLimit,
  RequestTrace,
  Route,
} from '../core/index.ts'
import type { Connection } from '../listen/index.ts'
import type { BodyBudget, BodyHolder, StreamBudget, StreamHolder } from './body-budget.ts'

/** Maximum delay of a timer; later ends are checked again then. */
const MAX_TIMER_MS = 2 ** 31 - 1

/** One year (RFC 6797 §6.1.1), without subdomains. */
const STRICT_TRANSPORT = 'max-age=31536000'

/** Shared by all exchanges of a proxy. */
export interface ExchangeContext {
  readonly clock: Clock
  readonly activeStreams: { add(by: number): void }
  readonly isDraining: boolean
  /** Whether responses carry HSTS (RFC 6797). */
  readonly isStrictTransport: boolean
  readonly bodyBudget: BodyBudget
  readonly streamBudget: StreamBudget
}

/** One request and its response, from arrival to the last byte; stages see it as `Inbound`. */
export class InboundRequest implements Inbound, BodyHolder, StreamHolder {
  readonly request: ClientRequest
  readonly response: ClientResponse
  readonly connection: Connection<InboundRequest>
  /** Stored here, because the client library removes it from `request` after a streamed body. */
  readonly socket: Socket
  readonly id: string
  readonly receivedAtMs: EpochMs
  readonly method: string
  /** Set by admission; empty before. */
  path = ''
  query = ''
  hasEmptyQuery = false
  readonly responseHeaders: string[]

  /** Known so far; for the log, the metrics and the challenge. */
  localHandler: LocalHandler | undefined = undefined
  route: Route | undefined = undefined
  caller: Caller | undefined = undefined
  /** The request on a route with connected accounts: its failure may become a prompt. */
  promptable: Known | undefined = undefined
  attempts = 0
  /** The body for the backend. */
  body: Body | undefined = undefined
  trace: RequestTrace | undefined = undefined
  /** Its index among the requests in flight. */
  slot = -1
  /** The failure that was written directly to the connection. */
  refusal: Failure | undefined = undefined
  /** Why the proxy aborted the response. */
  cutFor: Failure | undefined = undefined
  onRefused: ((failure: Failure) => void) | undefined = undefined
  /** Counted bytes of its buffered body. */
  keptBytes = 0
  streamBytes = 0
  #isClientHeld = false
  /** Users of the body: the request itself, and each exchange that has not released it. */
  #bodyUsers = 1
  /** For the body watch: the deadline, its callback, and the bytes of a stream at the last check. */
  bodyUntilMs = 0
  onBodyLate: ((limit: ReachedLimit) => void) | undefined = undefined
  streamedBytes: number | undefined = undefined

  readonly #context: ExchangeContext
  #endStream: (() => void) | undefined = undefined
  #tokenEnd: NodeJS.Timeout | undefined = undefined

  constructor(
    request: ClientRequest,
    response: ClientResponse,
    connection: Connection<InboundRequest>,
    id: string,
    context: ExchangeContext,
  ) {
    this.request = request
    this.response = response
    this.connection = connection
    this.socket = request.socket
    this.id = id
    this.#context = context
    this.receivedAtMs = context.clock.now()
    this.method = request.method
    this.responseHeaders = ['x-request-id', id]
    if (context.isStrictTransport) this.responseHeaders.push('strict-transport-security', STRICT_TRANSPORT)
  }

  get peer(): string {
    return this.connection.peer.clientOf(this.request).address
  }

  /**
   * Checking on demand is cheaper than a `close` listener for each response. A response that the proxy has not ended
   * was ended by the client.
   */
  get gone(): boolean {
    return this.refusal !== undefined || (this.response.destroyed && !this.response.writableEnded)
  }

  /** Rejects the rest of its input; consumers are notified. */
  refuse(failure: Failure): void {
    if (this.refusal !== undefined) return
    this.refusal = failure
    this.onRefused?.(failure)
  }

  /** Whether its client is paused, or received data has no reader: then missing data is not the client's fault. */
  get isBodyStalled(): boolean {
    return this.#isClientHeld || this.request.readableLength > 0 || this.request.isPaused()
  }

  holdClient(isHeld: boolean): void {
    if (isHeld === this.#isClientHeld) return
    this.#isClientHeld = isHeld
    this.connection.holdBody(isHeld)
  }

  holdBody(): void {
    this.#bodyUsers++
  }

  releaseBody(): void {
    if (--this.#bodyUsers === 0) this.#context.bodyBudget.release(this)
  }

  onStream(end: () => void): void {
    if (this.#endStream !== undefined) return
    this.#endStream = end
    this.#context.activeStreams.add(1)
    if (this.method !== 'GET') return
    // GET streams end with the token that opened them and with the proxy (decisions §7, Sessions); responses to POST
    // continue.
    if (this.#context.isDraining) this.endStream()
    else if (this.caller?.kind === 'authenticated') this.#endWith(this.caller.expiresAtMs)
  }

  /** Ends a running event stream cleanly; false without one. */
  endStream(): boolean {
    const end = this.#endStream
    end?.()
    return end !== undefined
  }

  /** Ends a stream that a GET opened when the session of its caller was revoked; keeps it while that is unknown. */
  endIfRevoked(): void {
    if (this.#endStream === undefined || this.method !== 'GET' || this.caller?.kind !== 'authenticated') return
    let isRevoked: boolean | undefined
    try {
      isRevoked = this.route?.isRevoked?.(this.caller)
    } catch {
      // The list of revoked sessions can't be read: a timer calls this, and its next call decides.
      return
    }
    if (isRevoked === true) this.endStream()
  }

  /** Milliseconds since it arrived. */
  get ageMs(): number {
    return this.#context.clock.now() - this.receivedAtMs
  }

  /** To be called once, when nothing more will be done for this request. */
  finish(): void {
    this.onRefused = undefined
    this.releaseBody()
    this.#context.streamBudget.end(this)
    clearTimeout(this.#tokenEnd)
    if (this.#endStream === undefined) return
    this.#endStream = undefined
    this.#context.activeStreams.add(-1)
  }

  #endWith(expiresAtMs: EpochMs | undefined): void {
    if (expiresAtMs === undefined) return
    const leftMs = expiresAtMs - this.#context.clock.now()
    if (leftMs <= 0) {
      this.endStream()
      return
    }
    this.#tokenEnd = setTimeout(() => this.#endWith(expiresAtMs), Math.min(leftMs, MAX_TIMER_MS))
    this.#tokenEnd.unref()
  }
}
