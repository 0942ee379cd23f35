import type { IncomingMessage, ServerResponse } from 'node:http'

/** A request to one of our own endpoints, after the checks that need no route, its body read whole. */
export interface LocalRequest {
  readonly request: IncomingMessage
  /** `X-Request-Id` and the CORS headers are set already. */
  readonly response: ServerResponse
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
  /**
   * Has ended the answer when it returns or settles, or throws `Failure`, which is answered in OAuth's shape (decisions
   * §5, RFC 6749 §5.2) as long as no head was sent.
   */
  handle(request: LocalRequest): void | Promise<void>
  /** As `handle`, for a header section beyond `listen.headerLimit`, up to 64 KiB beyond it. Absent: 431 as everywhere. */
  refuseHeaders?(request: LocalRequest): void | Promise<void>
}
