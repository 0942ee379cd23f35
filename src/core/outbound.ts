import type { ReachedLimit } from './limit.ts'

/** Whose request to a service it is, so that nobody's requests keep others' away. */
export interface OnBehalf {
  /** Issuer and identity of a caller; for one who is not known yet, the network of the peer. */
  readonly caller: string
  /**
   * The caller is not known: many may stand behind the peer, so that it has no circuit of its own, and those who are known
   * come first.
   */
  readonly isStranger?: boolean
  /** Digest of the token that the request is about. */
  readonly token: string
}

/** One request to a service that is not a backend: identity provider, token endpoint, STS, registry source. */
export interface OutboundRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
  /** What is sent when it is sent once more, for what may be used only once. Default: the same. */
  readonly again?: () => Promise<OutboundRequest>
  /** Absent: the proxy's own. */
  readonly onBehalfOf?: OnBehalf
  /** Nothing is waited for after this (`performance.now()`), where the deadline of the client is later. */
  readonly endsAtMs?: number
}

/** Its answer, read whole within the size bound. Header names are lower-case; repeated ones are joined by `, `. */
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
  /** More than the size bound. */
  | 'too_large'
  /** What came is no HTTP. */
  | 'malformed'
  /** The address guard refused the resolved address. */
  | 'blocked_address'
  /** The circuit is open, or the service asked for rest: for everybody, for this caller or for this token. */
  | 'breaker_open'
  /** The client was closed. */
  | 'closed'
  /** The concurrency bound is reached, and the turn did not come. */
  | 'overloaded'

/** Why there is no answer at all. Answers with any status are answers, not errors. */
export class OutboundError extends Error {
  readonly kind: OutboundErrorKind
  /** When to come back, in whole seconds, for `breaker_open`. */
  readonly retryAfterSeconds: number | undefined
  /** For `timeout` and `unreachable`: a connection stood, and the request was sent or begun to be. */
  readonly isSent: boolean
  /** What was reached, for `timeout`, `too_large` and `overloaded`, where whoever threw it knows. */
  readonly limit: ReachedLimit | undefined
  /** Where it was to go: an origin, never a path or query. */
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

/** A client for one service, with its TLS, guard, deadline, size bound, breaker and concurrency bound built in. */
export interface Outbound {
  /** Throws `OutboundError`; follows no redirects (a 3xx is an answer). */
  request(request: OutboundRequest): Promise<OutboundResponse>
  close(): Promise<void>
}
