/** What went wrong on a connection; the codes are shown in logs. */
export type WireErrorCode =
  /** The peer ended the connection before its answer was whole. */
  | 'WIRE_CLOSED'
  /** What the peer sent is not HTTP/1.1 as it is read here. */
  | 'WIRE_MALFORMED'
  /** The same, because its head is too large. */
  | 'WIRE_HEAD_TOO_LARGE'
  /** A request did not come in time. */
  | 'WIRE_REQUEST_LATE'
  /** No answer began in time. */
  | 'WIRE_FIRST_BYTE'
  /** The peer fell silent within its answer. */
  | 'WIRE_IDLE'
  /** A request that can't be written without a doubt about what it is. */
  | 'WIRE_REQUEST'
  /** All connections, of the peer or of all pools together, were taken for too long. */
  | 'WIRE_CROWDED'
  /** The pool is closed. */
  | 'WIRE_POOL_CLOSED'

/** An error of this room; everything else that a handler is told comes from the socket or from whoever aborted. */
export class WireError extends Error {
  readonly code: WireErrorCode

  constructor(code: WireErrorCode, message: string) {
    super(message)
    this.name = 'WireError'
    this.code = code
  }
}

/** What is told of bytes that break the grammar. */
export const malformed = (what: string): WireError => new WireError('WIRE_MALFORMED', what)
