import type { MonotonicMs } from './time.ts'
import type { ReachedLimit } from './limit.ts'

/** Attributes an outbound request, so that one caller can't starve others. */
export interface OnBehalf {
  /** Issuer and identity of a caller; for an unauthenticated one, the peer's network. */
  readonly caller: string
  /**
   * The caller is not authenticated: many clients may share the peer's network, so it has no circuit of its own, and
   * authenticated callers take precedence.
   */
  readonly isUnauthenticated?: boolean
  /** Digest of the token the request concerns. */
  readonly token: string
}

/** A request to a service that is not a backend: identity provider, token endpoint, STS, registry source. */
export interface OutboundRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
  /** Builds the request for a retry, when parts of it are single-use. Default: the same request. */
  readonly again?: () => Promise<OutboundRequest>
  /** Absent: on the proxy's own behalf. */
  readonly onBehalfOf?: OnBehalf
  /** Deadline, unless the client's own deadline is earlier. */
  readonly endsAtMs?: MonotonicMs
}

/**
 * The response, read completely within the size limit. Header names are lower-case; repeated ones are joined by `, `.
 */
export interface OutboundResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

export type OutboundErrorKind =
  /** Deadline passed. */
  | 'timeout'
  /** DNS, connect, TLS or reset. */
  | 'unreachable'
  /** Larger than the size limit. */
  | 'too_large'
  /** Not valid HTTP. */
  | 'malformed'
  /** The address guard refused the resolved address. */
  | 'blocked_address'
  /** The circuit is open, or the service sent Retry-After: for all, for this caller or for this token. */
  | 'breaker_open'
  /** The client was closed. */
  | 'closed'
  /** The concurrency limit is reached, and no slot became free in time. */
  | 'overloaded'

/** Why a request got no response. A response with any status is not an error. */
export class OutboundError extends Error {
  readonly kind: OutboundErrorKind
  /** Retry delay in whole seconds, for `breaker_open`. */
  readonly retryAfterSeconds: number | undefined
  /** For `timeout` and `unreachable`: connected, and at least part of the request was sent. */
  readonly isSent: boolean
  /** The limit that was reached, for `timeout`, `too_large` and `overloaded`, when known. */
  readonly limit: ReachedLimit | undefined
  /** Destination origin, never a path or query. */
  readonly at: string | undefined

  constructor(
    kind: OutboundErrorKind,
    options: {
      cause?: unknown
      retryAfterSeconds?: number | undefined
      isSent?: boolean
      limit?: ReachedLimit | undefined
      at?: string | undefined
    } = {},
  ) {
    super(kind, { cause: options.cause })
    this.name = 'OutboundError'
    this.kind = kind
    this.retryAfterSeconds = options.retryAfterSeconds
    this.isSent = options.isSent ?? false
    this.limit = options.limit
    this.at = options.at
  }
}

/**
 * HTTP client for one service, with TLS, address guard, deadline, size limit, circuit breaker and concurrency limit.
 */
export interface Outbound {
  /** Throws `OutboundError`. Follows no redirects: a 3xx is a response. */
  request(request: OutboundRequest): Promise<OutboundResponse>
  close(): Promise<void>
}
