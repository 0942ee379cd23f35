import type { EventEmitter } from 'node:events'
import type { IncomingHttpHeaders } from 'node:http'
import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import type { Failure } from './failure.ts'

/** A request of a client. Its body is what it streams. */
export interface ClientRequest extends Readable {
  readonly method: string
  /** The request target, as received. */
  readonly url: string
  readonly httpVersion: '1.0' | '1.1'
  /** The client waits for `100 Continue` before it sends the body (RFC 9110 §10.1.1). */
  readonly expectsContinue: boolean
  /** The client requests another protocol (RFC 9110 §7.8), whose data follows instead of a body. */
  readonly isUpgrade: boolean
  /** By lower-case name: lists are joined, of fields with one value the first line counts. */
  readonly headers: IncomingHttpHeaders
  /** All lines by lower-case name. */
  readonly headersDistinct: NodeJS.Dict<string[]>
  /** Flat (name, value, …), as received. */
  readonly rawHeaders: string[]
  readonly socket: Socket
  /** True once the whole body has arrived. */
  readonly complete: boolean
  /** The whole body, if it arrived in one piece and reading has not begun. Undefined: read the stream. */
  takeWhole(): Buffer | undefined
}

/** Writes the response to a `ClientRequest` piece by piece. */
export interface ClientResponse extends EventEmitter {
  shouldKeepAlive: boolean
  readonly chunkedEncoding: boolean
  /** True once the head is fixed; it may have been sent. */
  readonly headersSent: boolean
  /** Null after it was sent. */
  readonly socket: Socket | null
  readonly destroyed: boolean
  readonly writableEnded: boolean
  /** True once everything was sent. */
  readonly writableFinished: boolean
  readonly writableNeedDrain: boolean
  /** @param headers flat (name, value, …) */
  writeHead(status: number, headers?: readonly string[]): this
  flushHeaders(): void
  /** False when the client's buffer is full; `drain` follows. */
  write(chunk: Buffer | string): boolean
  end(chunk?: Buffer | string): unknown
  writeContinue(): void
  /** An interim response (RFC 9110 §15.2) with flat headers, which HTTP/1.0 does not get. Throws for a header that is none. */
  writeInterim(status: number, headers: readonly string[]): void
  /** Ends the connection. */
  destroy(error?: Error): unknown
  /** Hands the connection to the upgraded protocol, with the data received after the request. */
  detachSocket(): void
}

/** The response of an endpoint of the program itself. */
export interface EndpointResponse {
  readonly status: number
  /** By lower-case name; a list is a line for each. The length is that of the body. */
  readonly headers: Readonly<Record<string, string | readonly string[]>>
  /** A stream flows as the client reads, and is destroyed when the client has gone. */
  readonly body: string | Buffer | Readable
}

/** Headers by lower-case name, and the body, of a response to a failure; the status is that of the failure. */
export interface FailureContent {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** A request to one of the proxy's own endpoints, after the route-independent checks, with its whole body. */
export interface LocalRequest {
  readonly request: ClientRequest
  /** Request id, as in logs and `X-Request-Id`. */
  readonly id: string
  readonly method: string
  /** Raw path, checked (decisions §2.8), without query. */
  readonly path: string
  /** Raw query without `?`; empty when there is none. */
  readonly query: string
  /** At most `bodyLimitBytes` of its handler; empty when there is none. */
  readonly body: Buffer
  /** The client's address, honoring headers of `listen.trustedProxies`. */
  readonly client: {
    /** IP address; `unix` for a Unix socket without a trusted header. */
    readonly address: string
    /** True when the client used TLS to reach the proxy or a trusted proxy before it. */
    readonly isSecure: boolean
  }
}

/**
 * An endpoint of the proxy itself on the main listener, matched before any route (discovery documents, the embedded
 * authorization server). The listener handles preflights, unknown methods (405 with `Allow`), body limits and
 * timeouts, framing and `Host` before `handle`.
 */
export interface LocalHandler {
  /**
   * Exact raw path, such as `/oauth/token`; one that ends in `/*` takes any last segment. Each address (path and
   * `exactQuery`) has one handler.
   */
  readonly path: string
  /** Query that is part of the address (RFC 9728 §3.1 keeps a resource's query); absent: any query. */
  readonly exactQuery?: string
  /** `GET` includes `HEAD`. `OPTIONS` never reaches the handler. */
  readonly methods: readonly string[]
  /** Larger bodies get 413. 0: the endpoint has no body; a small one is discarded. */
  readonly bodyLimitBytes: number
  /** CORS: any origin (`any_origin`), or only those in `listen.allowedOrigins`. */
  readonly cors: 'any_origin' | 'allowed_origins'
  /**
   * Origins, lower case, that may post forms here in addition to `listen.allowedOrigins` (the server's own pages).
   */
  readonly ownOrigins?: readonly string[]
  /** Pages of any origin may post forms here, but can't read the response. */
  readonly takesForeignForms?: boolean
  /**
   * Returns the response; `X-Request-Id` and CORS headers are added. A thrown `Failure` becomes an OAuth error response
   * (decisions §5, RFC 6749 §5.2).
   */
  handle(request: LocalRequest): EndpointResponse | Promise<EndpointResponse>
  /**
   * The content of the response to a request that the listener rejects before `handle` (method, origin, size). Absent:
   * an OAuth error response.
   */
  failureContent?(failure: Failure, requestId: string): FailureContent
}
