/** Error of a connection; the codes appear in logs. */
export type WireErrorCode =
  /** The peer closed the connection before its response was complete. */
  | 'WIRE_CLOSED'
  /** The peer sent invalid HTTP/1.1. */
  | 'WIRE_MALFORMED'
  /** The head of the peer is too large. */
  | 'WIRE_HEAD_TOO_LARGE'
  /** A request did not arrive in time. */
  | 'WIRE_REQUEST_LATE'
  /** No response began in time. */
  | 'WIRE_FIRST_BYTE'
  /** The peer fell silent within its response. */
  | 'WIRE_IDLE'
  /** A request that would be ambiguous. */
  | 'WIRE_REQUEST'
  /** All connections, of the peer or of all pools together, were in use for too long. */
  | 'WIRE_CROWDED'
  /** The pool is closed. */
  | 'WIRE_POOL_CLOSED'

/** An error of this module; other errors of a handler come from the socket or from an abort. */
export class WireError extends Error {
  readonly code: WireErrorCode

  constructor(code: WireErrorCode, message: string) {
    super(message)
    this.name = 'WireError'
    this.code = code
  }
}

/** The error for bytes that violate the grammar. */
export const malformed = (what: string): WireError => new WireError('WIRE_MALFORMED', what)
