import type { EndpointAnswer } from '../core/index.ts'
import { isObject, type Request } from '../mcp/index.ts'
import { WayError } from './way-error.ts'

/** A session id is visible ASCII (MCP, streamable HTTP); a longer one is nobody's. */
const SESSION_ID = /^[\x21-\x7e]{1,2048}$/

/** What is known of the server since the handshake (2025-11-25 and older). */
interface Established {
  /** Absent where the server keeps none. */
  readonly id: string | undefined
  readonly version: string
  /** What the client said in its handshake; said again to begin another session. */
  readonly handshake: Request
}

/** The session with the server, of which a client on standard input knows nothing. */
export class Session {
  #current: Established | undefined
  /** Goes up with each session, so that one loss is one loss however many requests notice it. */
  number = 0

  get current(): Established | undefined {
    return this.#current
  }

  /** What belongs on each request of a client that has shaken hands. */
  headers(): Record<string, string> {
    if (this.#current === undefined) return {}
    const { id, version } = this.#current
    return { 'mcp-protocol-version': version, ...(id === undefined ? {} : { 'mcp-session-id': id }) }
  }

  /**
   * The handshake was answered with `result`. Throws `WayError` bad_answer when that can't be, and session_lost when a
   * session that begins anew speaks another revision than the client was told.
   */
  establish(handshake: Request, { headers }: Pick<EndpointAnswer, 'headers'>, result: unknown, isAnew: boolean): void {
    const version = isObject(result) ? result['protocolVersion'] : undefined
    if (typeof version !== 'string' || !/^[\x21-\x7e]{1,64}$/.test(version))
      throw new WayError('bad_answer', 'answered initialize without a protocol version')
    if (isAnew && this.#current !== undefined && this.#current.version !== version)
      throw new WayError(
        'session_lost',
        'speaks another revision of the protocol since it began anew; restart the client',
      )
    const { 'mcp-session-id': given } = headers
    if (given !== undefined && (typeof given !== 'string' || !SESSION_ID.test(given)))
      throw new WayError('bad_answer', 'gave a session id that can not be one')
    this.#current = { id: given, version, handshake }
    this.number++
  }

  /** Nobody may use it any more. */
  end(): void {
    this.#current = undefined
  }
}
