import type { EndpointAnswer } from '../core/index.ts'
import { isObject, type Request } from '../mcp/index.ts'
import { BridgeError } from './bridge-error.ts'

/** A session ID is visible ASCII (MCP, streamable HTTP), of bounded length. */
const SESSION_ID = /^[\x21-\x7e]{1,2048}$/

/** State of the session since the handshake (2025-11-25 and older). */
interface Established {
  /** Undefined if the server uses no session IDs. */
  readonly id: string | undefined
  readonly version: string
  /** The client's `initialize`, repeated for a new session. */
  readonly handshake: Request
}

/** The session with the server, hidden from the client. */
export class Session {
  #current: Established | undefined
  /** Increases with each session, so that concurrent requests report one loss once. */
  number = 0

  get current(): Established | undefined {
    return this.#current
  }

  /** Headers of requests after the handshake. */
  headers(): Record<string, string> {
    if (this.#current === undefined) return {}
    const { id, version } = this.#current
    return { 'mcp-protocol-version': version, ...(id === undefined ? {} : { 'mcp-session-id': id }) }
  }

  /**
   * Stores the result of the handshake. Throws `BridgeError` bad_answer if it is invalid, and session_lost if a new
   * session has a different revision.
   */
  establish(
    handshake: Request,
    { headers }: Pick<EndpointAnswer, 'headers'>,
    result: unknown,
    isRenewal: boolean,
  ): void {
    const version = isObject(result) ? result['protocolVersion'] : undefined
    if (typeof version !== 'string' || !/^[\x21-\x7e]{1,64}$/.test(version))
      throw new BridgeError('bad_answer', 'returned no protocolVersion for initialize')
    if (isRenewal && this.#current !== undefined && this.#current.version !== version)
      throw new BridgeError('session_lost', 'uses a different protocol revision in the new session; restart the client')
    const { 'mcp-session-id': given } = headers
    if (given !== undefined && (typeof given !== 'string' || !SESSION_ID.test(given)))
      throw new BridgeError('bad_answer', 'returned an invalid session id')
    this.#current = { id: given, version, handshake }
    this.number++
  }

  /** Invalidates the session. */
  end(): void {
    this.#current = undefined
  }
}
