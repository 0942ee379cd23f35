import type { Readable } from 'node:stream'
import type { Secret } from './secret.ts'

/** One HTTP request of an MCP client to its server. */
export interface EndpointRequest {
  readonly method: 'POST' | 'GET' | 'DELETE'
  readonly headers: Readonly<Record<string, string>>
  readonly body?: Uint8Array
  /** Path and query at the same server. Default: the endpoint's own. */
  readonly path?: string
  /** Ends the request, and the answer with it, whatever has come of it. */
  readonly signal: AbortSignal
}

/** Its answer, whose body is still to be read. Names are lower case. */
export interface EndpointAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  /** Must be read to its end or destroyed. */
  readonly body: Readable
}

/** A way to one MCP server over HTTP, wherever it is: another process, or the pipeline of this one. */
export interface McpEndpoint {
  /**
   * Answers with any status are answers, redirects to elsewhere too. Rejects with `OutboundError` (`unreachable`, `timeout`,
   * `blocked_address`, `closed`) when there is none, and with the reason of `signal` when that ended it.
   */
  send(request: EndpointRequest): Promise<EndpointAnswer>
  /** Ends what is running. */
  close(): Promise<void>
}

/** The access token that goes to an MCP server, whoever provides it. */
export interface EndpointCredentials {
  /** The token now; undefined where there is none, and the request goes out without. May take as long as a login. */
  current(): Promise<Secret | undefined>
  /**
   * The server answered 401, or 403 with `insufficient_scope`, to a request with `used`; `challenge` is its
   * `WWW-Authenticate`. True when `current` gives another token now, so that the request can be sent once more; else says
   * in `CredentialRefusal` what to do. A person is asked only where `mayAsk`: for what the user wants, not for what goes on
   * in the background.
   */
  refused(used: Secret | undefined, challenge: string | undefined, mayAsk: boolean): Promise<true>
}

/** There is no token to be had: why, and what the user can do. Its texts are for the user, and hold no secret. */
export class CredentialRefusal extends Error {
  readonly reason: 'missing_token' | 'invalid_token' | 'insufficient_scope' | 'login_failed'

  constructor(reason: CredentialRefusal['reason'], message: string) {
    super(message)
    this.name = 'CredentialRefusal'
    this.reason = reason
  }
}
