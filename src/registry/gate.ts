import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { asFailure, Failure, FAILURES, type FailureCode } from '../core/index.ts'
import { checkPath, checkQuery, checkTokenInTarget } from '../http/index.ts'
import { ALLOWED_METHODS, COMMON_HEADERS, failureBody, failureHeaders, writeFailure } from './answer.ts'

/** The one place where an encoded slash may be: in the middle of a server's name (decisions §2.8). */
const SERVER_NAME_SEGMENT = /^(\/registry\/[^/]+\/v0\.1\/servers\/[^/%]+)%2f([^/%]+\/versions(?:\/[^/]+)?)$/i

const READ_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD'])

/** A day: what may be asked for never changes while a process runs. */
const PREFLIGHT_SECONDS = '86400'

function writeOptions(request: IncomingMessage, response: ServerResponse): void {
  const isPreflight = request.headers['access-control-request-method'] !== undefined
  response.writeHead(204, {
    ...COMMON_HEADERS,
    allow: ALLOWED_METHODS,
    ...(isPreflight
      ? {
          'access-control-allow-methods': ALLOWED_METHODS,
          'access-control-allow-headers': 'Authorization, Content-Type, MCP-Protocol-Version, X-Request-Id',
          'access-control-max-age': PREFLIGHT_SECONDS,
        }
      : {}),
    'content-length': '0',
  })
  response.end()
}

/** Refuses what two parties could read differently, and tokens in the query (decisions §2.2, §2.8). */
function checkTarget(target: string): void {
  const mark = target.indexOf('?')
  const path = mark === -1 ? target : target.slice(0, mark)
  checkPath(path.replace(SERVER_NAME_SEGMENT, '$1$2'))
  if (mark === -1) return
  const query = target.slice(mark + 1)
  checkQuery(query)
  checkTokenInTarget('', query, [])
}

/**
 * Looks at a request before it is routed; true when it may go on. Answers 400 to ambiguous paths and to tokens in the
 * query, preflights (which carry no credentials and show nothing), and 405 to everything but GET and HEAD: nothing here
 * can be written. `challengeOf` gives the challenge for a failure, if it calls for one.
 */
export function admit(
  request: IncomingMessage,
  response: ServerResponse,
  challengeOf: (failure: Failure) => string | undefined,
): boolean {
  try {
    const { method = '', url = '' } = request
    if (method === 'OPTIONS' && url === '*') {
      writeOptions(request, response)
      return false
    }
    checkTarget(url)
    if (READ_METHODS.has(method)) return true
    if (method !== 'OPTIONS') throw new Failure('method_not_allowed')
    writeOptions(request, response)
    return false
  } catch (error) {
    const failure = asFailure(error)
    // What is left of a body would be read as the next request.
    writeFailure(response, failure, challengeOf(failure), !request.complete)
    return false
  }
}

const MALFORMED: Readonly<Record<string, FailureCode>> = {
  HPE_HEADER_OVERFLOW: 'headers_too_large',
  ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout',
}
const REASONS: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  408: 'Request Timeout',
  431: 'Request Header Fields Too Large',
}

/** Answers what Node's parser refuses, and ends the connection (RFC 9112 §2.2). */
export function refuseMalformed(error: NodeJS.ErrnoException, socket: Socket): void {
  if (!socket.writable) return void socket.destroy()
  const failure = new Failure(MALFORMED[error.code ?? ''] ?? 'bad_request')
  const body = failureBody(failure)
  const headers = {
    ...COMMON_HEADERS,
    ...failureHeaders(failure, undefined),
    'content-length': String(Buffer.byteLength(body)),
    connection: 'close',
  }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  const { status } = FAILURES[failure.code]
  socket.end(`HTTP/1.1 ${status} ${REASONS[status] ?? ''}\r\n${lines.join('')}\r\n${body}`)
}
