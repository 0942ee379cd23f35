import type { EventEmitter } from 'node:events'
import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http'
import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'

/** A request of a client. Its body is what it streams. */
export interface ClientRequest extends Readable {
  readonly method: string
  /** The request target as it came. */
  readonly url: string
  readonly httpVersion: '1.0' | '1.1'
  /** The client waits for `100 Continue` before it sends the body (RFC 9110 §10.1.1). */
  readonly expectsContinue: boolean
  /** Another protocol is asked for (RFC 9110 §7.8) and comes behind it instead of a body. */
  readonly isUpgrade: boolean
  /** By lower-case name: lists are joined, of fields with one value the first line counts. */
  readonly headers: IncomingHttpHeaders
  /** All lines by lower-case name. */
  readonly headersDistinct: NodeJS.Dict<string[]>
  /** As they stood, flat (name, value, …). */
  readonly rawHeaders: string[]
  readonly socket: Socket
  /** All of it has come. */
  readonly complete: boolean
  /** The whole body, where all of it has come in one piece and nobody has begun to read it. Undefined: it has to be read. */
  takeWhole(): Buffer | undefined
}

/** The answer to it. */
export interface ClientResponse extends EventEmitter {
  statusCode: number
  shouldKeepAlive: boolean
  readonly chunkedEncoding: boolean
  /** Its head is fixed, and perhaps out. */
  readonly headersSent: boolean
  /** Null before its turn and when it is out. */
  readonly socket: Socket | null
  readonly destroyed: boolean
  readonly writableEnded: boolean
  /** All of it is out. */
  readonly writableFinished: boolean
  readonly writableNeedDrain: boolean
  setHeader(name: string, value: number | string | readonly string[]): unknown
  getHeaders(): OutgoingHttpHeaders
  /** `headers` by name or flat. */
  writeHead(status: number, headers?: OutgoingHttpHeaders | string[]): this
  flushHeaders(): void
  /** False: the client does not take it; `drain` comes when it does. */
  write(chunk: Buffer | string): boolean
  end(chunk?: Buffer | string): unknown
  writeContinue(): void
  writeProcessing(): void
  writeEarlyHints(hints: Record<string, string | string[]>): void
  /** Ends the connection. */
  destroy(error?: Error): unknown
  /** From here on the connection is the other protocol's that was asked for; gives what has come of that. */
  detachSocket(): void
}

/** A request to one of our own endpoints, after the checks that need no route, its body read whole. */
export interface LocalRequest {
  readonly request: ClientRequest
  /** `X-Request-Id` and the CORS headers are set already. */
  readonly response: ClientResponse
  /** Request id, as in logs and `X-Request-Id`. */
  readonly id: string
  readonly method: string
  /** Raw path, checked (decisions §2.8), without query. */
  readonly path: string
  /** Raw query without `?`; empty when there is none. */
  readonly query: string
  /** At most `bodyLimitBytes` of its handler; empty when there is none. */
  readonly body: Buffer
  /** Who is at the other end, as far as `listen.trustedProxies` lets headers say it. */
  readonly client: {
    /** IP address; `unix` for a Unix socket without a trusted header. */
    readonly address: string
    /** True when the client reached us, or a trusted proxy before us, over TLS. */
    readonly isSecure: boolean
  }
}

/**
 * An endpoint of the proxy itself, served on the main listener before any route (discovery documents, the embedded
 * authorization server). Preflights, unknown methods (405 with `Allow`), bodies that are too large or too slow, framing
 * and `Host` are judged before `handle` is called.
 */
export interface LocalHandler {
  /** Exact raw path, byte for byte, such as `/oauth/token`. One address (path and `exactQuery`) has one handler. */
  readonly path: string
  /** Query that belongs to the address (RFC 9728 §3.1 keeps a resource's query); absent: any query. */
  readonly exactQuery?: string
  /** `GET` includes `HEAD`; `OPTIONS` is never handed over. */
  readonly methods: readonly string[]
  /** Larger bodies are 413; 0 when a body means nothing here: a small one is read away. */
  readonly bodyLimitBytes: number
  /** Who may read the answer from a page of another origin: `*`, or only what `listen.allowedOrigins` says. */
  readonly cors: 'everybody' | 'allowed_origins'
  /** Origins that may send forms here whatever `listen.allowedOrigins` says (the pages' own), lower case. */
  readonly ownOrigins?: readonly string[]
  /** Pages of any origin may post forms here; they can't read the response. */
  readonly takesForeignForms?: boolean
  /**
   * Has ended the answer when it returns or settles, or throws `Failure`, which is answered in OAuth's shape (decisions
   * §5, RFC 6749 §5.2) as long as no head was sent.
   */
  handle(request: LocalRequest): void | Promise<void>
  /** As `handle`, for a header section beyond `listen.headerLimit`, up to 64 KiB beyond it. Absent: 431 as everywhere. */
  refuseHeaders?(request: LocalRequest): void | Promise<void>
}
