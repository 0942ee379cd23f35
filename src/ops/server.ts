import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Log, Secret } from '../core/index.ts'
import { bind, parseListenAddress } from '../listen/index.ts'
import { createDispatch } from './dispatch.ts'
import type { Answer, OpsHandler, Readiness } from './endpoint.ts'

export interface OpsOptions {
  /** `host:port`, `:port`, `[::1]:port` or `unix:/path`; port 0 takes a free one. */
  readonly address: string
  readonly version: string
  readonly readiness: () => Readiness
  /** Prometheus text exposition format. */
  readonly metrics: () => Promise<string>
  /** Endpoints for whoever runs the process (`'GET /config'` → handler), guarded as decisions §7 (Admin listener) says. */
  readonly guarded?: {
    readonly token?: () => Secret | undefined
    readonly endpoints: Readonly<Record<string, OpsHandler>>
  }
  readonly log: Log
}

export interface Ops {
  /** `http://host:port` with the real port, or `unix:/path`. */
  readonly url: string
  /** Stops listening, lets answers under way finish for up to a second, then closes what is left. */
  close(): Promise<void>
}

const HEADERS_TIMEOUT_MS = 5_000
const REQUEST_TIMEOUT_MS = 10_000
const KEEP_ALIVE_MS = 5_000
const MAX_HEADER_BYTES = 16 * 1024
const CLOSE_GRACE_MS = 1_000

function write(request: IncomingMessage, response: ServerResponse, answer: Answer): void {
  // A body that nobody read would be taken for the next request on this connection.
  const hasRest = !request.complete
  response.writeHead(answer.status, {
    ...answer.headers,
    'content-length': Buffer.byteLength(answer.body),
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    ...(hasRest ? { connection: 'close' } : {}),
  })
  response.end(request.method === 'HEAD' ? undefined : answer.body)
}

/** What is no HTTP gets a status line and the end of the connection (RFC 9112 §2.2). */
function refuse(error: NodeJS.ErrnoException, socket: Socket): void {
  if (!socket.writable) return void socket.destroy()
  const status =
    error.code === 'HPE_HEADER_OVERFLOW'
      ? '431 Request Header Fields Too Large'
      : error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? '408 Request Timeout'
        : '400 Bad Request'
  socket.end(`HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-length: 0\r\nx-content-type-options: nosniff\r\n\r\n`)
}

/**
 * Starts the admin listener (the specification's internal server): open `GET /health /readiness /version /metrics`, and
 * the guarded endpoints. Rejects with `config_error` when the address is none or can't be bound.
 */
export async function startOps(options: OpsOptions): Promise<Ops> {
  const listen = parseListenAddress(options.address)
  const { token, endpoints = {} } = options.guarded ?? {}
  const dispatch = createDispatch({
    ...options,
    guarded: { isLocalBind: listen.isLoopback, endpoints, ...(token === undefined ? {} : { token }) },
  })
  const reply = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const answer = await dispatch(request)
    if (!response.destroyed) write(request, response, answer)
  }
  const server = createServer(
    {
      maxHeaderSize: MAX_HEADER_BYTES,
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      keepAliveTimeout: KEEP_ALIVE_MS,
      connectionsCheckingInterval: 1_000,
    },
    (request, response) => {
      void reply(request, response)
    },
  )
  server.on('clientError', refuse)
  // The socket's permissions are the guard of what it serves.
  const url = await bind(server, listen, { socketMode: 0o600 })
  const close = () =>
    new Promise<void>((resolve) => {
      const force = setTimeout(() => server.closeAllConnections(), CLOSE_GRACE_MS)
      server.close(() => {
        clearTimeout(force)
        resolve()
      })
      server.closeIdleConnections()
    })
  return { url, close }
}
