import { STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { Failure, type FailureCode } from '../core/index.ts'
import { mcpFailureBody } from '../http/index.ts'
import type { Exchange } from './exchange.ts'

/** How long a refused client may take to read why, in milliseconds. */
const CLOSING_MS = 2000

/**
 * Answers past the response and ends the connection: for what Node's parser refused, and for bodies that stopped coming.
 * When part of an answer is already out, the connection is cut instead: a client must not take it for whole.
 */
export function refuseConnection(socket: Duplex, exchange: Exchange | undefined, failure: Failure): void {
  // The first reason counts: what the parser says about a connection that is being closed is its echo.
  if (exchange !== undefined) exchange.refusal ??= failure
  if (!socket.writable || exchange?.response.headersSent === true) {
    socket.destroy()
    return
  }
  const body = mcpFailureBody(failure, exchange?.id ?? '')
  socket.end(
    `HTTP/1.1 ${failure.status} ${STATUS_CODES[failure.status] ?? ''}\r\nContent-Type: application/json\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  )
  // What the client still sends is thrown away; if we closed at once, it would be reset before it has read the answer.
  socket.resume()
  const timer = setTimeout(() => socket.destroy(), CLOSING_MS)
  timer.unref()
  socket.once('close', () => clearTimeout(timer))
}

/** The failure for an error of Node's HTTP parser or of its deadlines. */
export function parserFailure(error: Error): Failure {
  return new Failure(codeOf((error as NodeJS.ErrnoException).code), { cause: error })
}

function codeOf(code: string | undefined): FailureCode {
  if (code === 'HPE_HEADER_OVERFLOW') return 'headers_too_large'
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return 'request_timeout'
  return 'bad_request'
}
