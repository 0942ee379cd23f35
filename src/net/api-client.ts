import { OutboundError, type OutboundResponse } from '../core/index.ts'
import { flatten, roundTrip } from './round-trip.ts'
import { buildConnector, undici } from './undici.ts'

/** Connection settings of one API server. A change of any of them requires a new client. */
export interface ApiClientOptions {
  /** `https://host[:port]`. */
  readonly origin: string
  /** PEM certificates that replace the system roots. */
  readonly ca?: Buffer | undefined
  /** PEM client certificate and its key. */
  readonly cert?: Buffer | undefined
  readonly key?: Buffer | undefined
  /** Name to verify instead of the host of `origin`. */
  readonly serverName?: string | undefined
  readonly insecureSkipVerify?: boolean | undefined
  /** Connect timeout in milliseconds. Default 5000. */
  readonly connectMs?: number | undefined
}

export interface ApiRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Path and query. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | undefined
}

/** A streamed response. */
export interface ApiStream {
  readonly status: number
  /** Header names in lower case; repeated ones joined as a list. */
  readonly headers: Readonly<Record<string, string>>
  /** Ends with the response; throws if the connection is lost or silent for too long. */
  readonly chunks: AsyncIterable<Buffer>
  /** Releases the connection. */
  close(): void
}

/** Connections to one API server, for requests and streams. */
export interface ApiClient {
  /** Throws `OutboundError`. */
  request(
    request: ApiRequest,
    bounds: { readonly deadlineMs: number; readonly maxBytes: number },
  ): Promise<OutboundResponse>
  /** `headMs` bounds the wait for the head, `silenceMs` every silence after it. Throws `OutboundError`. */
  stream(request: ApiRequest, bounds: { readonly headMs: number; readonly silenceMs: number }): Promise<ApiStream>
  /** Rejects new requests; those in flight may complete. */
  retire(): void
  /** Aborts all requests. */
  close(): Promise<void>
}

const DEFAULT_CONNECT_MS = 5000
const KEEP_ALIVE_PROBE_MS = 15_000

/**
 * Creates a client for one API server with streamed responses (Kubernetes). It has no address guard, circuit breaker
 * or egress proxy.
 */
export function createApiClient(options: ApiClientOptions): ApiClient {
  const connect = buildConnector({
    timeout: options.connectMs ?? DEFAULT_CONNECT_MS,
    allowH2: false,
    keepAlive: true,
    keepAliveInitialDelay: KEEP_ALIVE_PROBE_MS,
    ...(options.ca === undefined ? {} : { ca: options.ca }),
    ...(options.cert === undefined ? {} : { cert: options.cert, key: options.key }),
    ...(options.serverName === undefined ? {} : { servername: options.serverName }),
    ...(options.insecureSkipVerify === true ? { rejectUnauthorized: false } : {}),
  })
  const { Pool } = undici()
  const pool = new Pool(options.origin, { connect, allowH2: false, headersTimeout: 0, bodyTimeout: 0, pipelining: 1 })
  return {
    request: ({ method, path, headers, body }, bounds) =>
      roundTrip(
        pool,
        { method, url: `${options.origin}${path}`, headers, ...(body === undefined ? {} : { body }) },
        bounds,
      ),
    async stream({ method, path, headers, body }, { headMs, silenceMs }) {
      const abort = new AbortController()
      try {
        const answer = await pool.request({
          method,
          path,
          headers,
          body: body ?? null,
          signal: abort.signal,
          headersTimeout: headMs,
          bodyTimeout: silenceMs,
        })
        // Streams aborted by `close` report no error.
        answer.body.on('error', () => {})
        return {
          status: answer.statusCode,
          headers: flatten(answer.headers),
          chunks: answer.body,
          close: () => abort.abort(),
        }
      } catch (cause) {
        const code = cause instanceof Error && 'code' in cause ? cause.code : undefined
        const isLate = code === 'UND_ERR_HEADERS_TIMEOUT' || code === 'UND_ERR_CONNECT_TIMEOUT'
        throw new OutboundError(isLate ? 'timeout' : 'unreachable', { cause })
      }
    },
    retire: () => void pool.close(),
    close: () => pool.destroy(),
  }
}
