import type { Readable } from 'node:stream'
import type { Secret } from './secret.ts'

/** One HTTP request of an MCP client to its server. */
export interface EndpointRequest {
  readonly method: 'POST' | 'GET' | 'DELETE'
  readonly headers: Readonly<Record<string, string>>
  readonly body?: Uint8Array
  /** Path and query at the same server. Default: the endpoint's own. */
  readonly path?: string
  /** Aborts the request and its response. */
  readonly signal: AbortSignal
}

/** The response, with an unread body. Header names are lower case. */
export interface EndpointAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  /** Must be read to its end or destroyed. */
  readonly body: Readable
}

/** An HTTP client for one MCP server, remote or in this process's pipeline. */
export interface McpEndpoint {
  /**
   * Any status is a response, cross-origin redirects included. Rejects with `OutboundError` (`unreachable`,
   * `timeout`, `blocked_address`, `closed`), or with the reason of `signal` after an abort.
   */
  send(request: EndpointRequest): Promise<EndpointAnswer>
  /** Aborts open requests. */
  close(): Promise<void>
}

/** Provider of the access token for an MCP server. */
export interface EndpointCredentials {
  /** The current token; undefined: send the request without one. May wait for a login. */
  current(): Promise<Secret | undefined>
  /**
   * Reports that the server answered 401, or 403 with `insufficient_scope`, to a request with `used`; `challenge` is
   * its `WWW-Authenticate`. Resolves to true when `current` now returns another token, so that the request can be
   * repeated; else throws `CredentialRefusal`. Starts an interactive login only with `mayAsk`: for user requests, not
   * for background streams.
   */
  refused(used: Secret | undefined, challenge: string | undefined, mayAsk: boolean): Promise<true>
}

/** No token is available: why, and what the user can do. Its texts are for the user and hold no secret. */
export class CredentialRefusal extends Error {
  readonly reason: 'missing_token' | 'invalid_token' | 'insufficient_scope' | 'login_failed'

  constructor(reason: CredentialRefusal['reason'], message: string) {
    super(message)
    this.name = 'CredentialRefusal'
    this.reason = reason
  }
}
