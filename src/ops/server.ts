import { causeOf, type Clock, type Log, type Secret } from '../core/index.ts'
import { openListener, parseListenAddress, serveEndpoint } from '../listen/index.ts'
import { createDispatch, failureAnswer } from './dispatch.ts'
import type { OpsHandler, Readiness } from './endpoint.ts'
import { createPageServer, type Pages } from './pages.ts'

export interface OpsOptions {
  /** `host:port`, `:port`, `[::1]:port` or `unix:/path`; port 0 selects a free one. */
  readonly address: string
  readonly version: string
  readonly readiness: () => Readiness | Promise<Readiness>
  /** Prometheus text format. */
  readonly metrics: () => Promise<string>
  /** Endpoints for operators (`'GET /config'` → handler), guarded by decisions §7 (Admin listener). */
  readonly guarded?: {
    readonly token?: () => Secret | undefined
    readonly endpoints: Readonly<Record<string, OpsHandler>>
    /** Pages behind the same guard, for browsers. */
    readonly pages?: Pages | undefined
  }
  /** Default: the time. */
  readonly clock?: Clock
  readonly log: Log
}

export interface Ops {
  /** `http://host:port` with the actual port, or `unix:/path`. */
  readonly url: string
  /** Stops listening, waits up to a second for responses in flight, then closes all connections. */
  close(): Promise<void>
}

const HEADERS_TIMEOUT_MS = 5_000
const REQUEST_TIMEOUT_MS = 10_000
const KEEP_ALIVE_MS = 5_000
const MAX_HEADER_BYTES = 16 * 1024
const CLOSE_GRACE_MS = 1_000
/** For probes, scrapers and operators. */
const MAX_CONNECTIONS = 1_000

/**
 * Starts the admin listener: open `GET /health /readiness /version /metrics`, and the guarded endpoints. Rejects with
 * `config_error` if the address is invalid or cannot be bound.
 */
export async function startOps(options: OpsOptions): Promise<Ops> {
  const address = parseListenAddress(options.address)
  const { token, endpoints = {}, pages } = options.guarded ?? {}
  const access = { isLocalBind: address.isLoopback, ...(token === undefined ? {} : { token }) }
  const dispatch = createDispatch({
    ...options,
    checksHost: address.isLoopback && address.kind !== 'unix',
    guarded: { ...access, endpoints },
  })
  const clock = options.clock ?? Date
  const servePage =
    pages === undefined
      ? undefined
      : createPageServer({ pages, access, clock, log: options.log, failureAnswer: (failure) => failureAnswer(failure) })
  const listener = await openListener({
    address,
    // The permissions of the socket are its guard.
    socketMode: 0o600,
    headerLimitBytes: MAX_HEADER_BYTES,
    deadlines: { headersMs: HEADERS_TIMEOUT_MS, requestMs: REQUEST_TIMEOUT_MS, keepAliveMs: KEEP_ALIVE_MS },
    maxConnections: MAX_CONNECTIONS,
    serve: serveEndpoint(
      (request, gone) => servePage?.(request, gone) ?? dispatch(request),
      (error) => options.log.error({ cause: causeOf(error) }, 'admin request failed'),
    ),
    refusal: () => ({ headers: { 'x-content-type-options': 'nosniff' }, body: '' }),
    log: options.log,
  })
  return {
    url: listener.url,
    async close() {
      listener.stop()
      await listener.emptied(CLOSE_GRACE_MS)
      await listener.close()
    },
  }
}
