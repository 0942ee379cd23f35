import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Dispatcher } from 'undici'
import { type EndpointAnswer, type EndpointRequest, type McpEndpoint, OutboundError } from '../core/index.ts'
import { createDispatcher } from './backend.ts'
import type { EgressProxy } from './egress.ts'
import { undici } from './undici.ts'

export interface McpEndpointOptions {
  /** URL of the MCP server, without fragment and user information. */
  readonly url: URL
  /** Connect timeout in milliseconds. Default 10 s. */
  readonly connectMs?: number
  /** PEM file with CA certificates that replace the system's. */
  readonly caCertPath?: string | undefined
  readonly egressProxy?: EgressProxy | undefined
}

const DEFAULT_CONNECT_MS = 10_000
/** No response timeout: a tool may take long, and the client can cancel. TCP detects a dead server. */
const NO_BOUND = 0
/** Errors of an established connection: the server may have received the request. */
const LOST: ReadonlySet<unknown> = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'ECONNABORTED', 'EPIPE'])
/** Redirects that repeat the same request (RFC 9110 §15.4.8, §15.4.9). */
const REPEATED: ReadonlySet<number> = new Set([307, 308])
const MAX_HOPS = 3
const TIMEOUTS: ReadonlySet<unknown> = new Set(['UND_ERR_CONNECT_TIMEOUT', 'UND_ERR_HEADERS_TIMEOUT', 'ETIMEDOUT'])

/**
 * Creates an endpoint for an MCP server; follows redirects within its origin. Throws `Failure` config_error if the CA
 * file is unreadable.
 */
export function createMcpEndpoint(options: McpEndpointOptions): McpEndpoint {
  const { url, caCertPath, egressProxy, connectMs = DEFAULT_CONNECT_MS } = options
  const connections = {
    origin: url.origin,
    timeouts: { connect: connectMs, firstByte: NO_BOUND, idle: NO_BOUND },
    http2: false,
    ...(caCertPath === undefined ? {} : { targetTls: { caCertPath } }),
    egressProxy,
  }
  let path = url.pathname + url.search
  const endpoint = endpointOver(createDispatcher(connections, false), () => path, connectMs)
  const send = async (request: EndpointRequest): Promise<EndpointAnswer> => {
    for (let hops = 0; ; hops++) {
      const answer = await endpoint.send(request)
      const isOwn = request.path === undefined
      const moved = isOwn && REPEATED.has(answer.status) ? targetOf(answer, url.origin, path) : undefined
      if (moved === undefined || hops === MAX_HOPS) return answer
      answer.body.destroy()
      path = moved
    }
  }
  return { ...endpoint, send }
}

/** Redirect target on the same origin, such as `/mcp/` for `/mcp`; undefined for others. */
function targetOf({ headers }: EndpointAnswer, origin: string, path: string): string | undefined {
  const [location] = [headers['location'] ?? []].flat()
  const target = location === undefined ? null : URL.parse(location, origin + path)
  return target === null || target.origin !== origin ? undefined : target.pathname + target.search
}

/** Creates an endpoint for an MCP server in this process, at `path()` of the server behind `connect`. */
export function createMemoryEndpoint(connect: () => Duplex, path: () => string): McpEndpoint {
  const { Pool } = undici()
  const pool = new Pool('http://localhost', {
    pipelining: 1,
    headersTimeout: NO_BOUND,
    bodyTimeout: NO_BOUND,
    // undici needs only what this stream provides, and expects an asynchronous result.
    connect: (_target, callback) => process.nextTick(() => callback(null, connect() as Socket)),
  })
  return endpointOver(pool, path)
}

function endpointOver(dispatcher: Dispatcher, path: () => string, connectMs?: number): McpEndpoint {
  const send = async ({ method, headers, body, signal, path: other }: EndpointRequest): Promise<EndpointAnswer> => {
    try {
      const answer = await dispatcher.request({ method, path: other ?? path(), headers, body: body ?? null, signal })
      // Readers get errors by reading; without a reader, errors are ignored.
      answer.body.on('error', () => {})
      return { status: answer.statusCode, headers: answer.headers, body: answer.body }
    } catch (cause) {
      if (signal.aborted) throw signal.reason
      if (cause instanceof OutboundError) throw cause
      const code = cause instanceof Error && 'code' in cause ? cause.code : undefined
      const isLate = TIMEOUTS.has(code)
      const limit = isLate && connectMs !== undefined ? ({ amount: connectMs, unit: 'ms' } as const) : undefined
      throw new OutboundError(isLate ? 'timeout' : 'unreachable', { cause, isSent: LOST.has(code), limit })
    }
  }
  return { send, close: () => dispatcher.destroy() }
}
