import { causeOf } from '../core/index.ts'
import { openListener, parseListenAddress, serveEndpoint } from '../listen/index.ts'
import type { Readiness } from '../ops/index.ts'
import { refusalOf } from './gate.ts'
import { createSite, type RegistryContent, type SiteOptions } from './site.ts'

export type RegistryOptions = SiteOptions & {
  /** `host:port`, `:port`, `[::1]:port` or `unix:/path`; port 0 selects a free one. */
  readonly address: string
  /** Timeout for request headers in milliseconds, then 408. Default 10 s, with a resolution of a second. */
  readonly headersTimeoutMs?: number
}

export interface RegistryServer {
  /** `http://host:port` with the actual port, or `unix:/path`. */
  readonly url: string
  /**
   * 503 without data or while draining; degraded while data are old or entries are skipped (decisions §7, Registry
   * file).
   */
  readiness(): Readiness
  /** Serves new content to new requests; those in flight keep the old one. */
  replace(content: RegistryContent): void
  /**
   * Stops listening, waits up to `graceMs` milliseconds (default 10 s) for responses in flight, then closes all
   * connections.
   */
  drain(graceMs?: number): Promise<void>
}

const HEADERS_TIMEOUT_MS = 10_000
const REQUEST_TIMEOUT_MS = 15_000
const KEEP_ALIVE_MS = 60_000
/** A token of 16 KiB and the other headers of a browser. */
const MAX_HEADER_BYTES = 24 * 1024
const DRAIN_GRACE_MS = 10_000

/**
 * Starts the main server of the registry. Rejects with `config_error` if the address is invalid or cannot be bound.
 * The owner closes the sources.
 */
export async function startRegistry(options: RegistryOptions): Promise<RegistryServer> {
  let isDraining = false
  const site = createSite(options)

  const listener = await openListener({
    address: parseListenAddress(options.address),
    headerLimitBytes: MAX_HEADER_BYTES,
    deadlines: {
      headersMs: options.headersTimeoutMs ?? HEADERS_TIMEOUT_MS,
      requestMs: REQUEST_TIMEOUT_MS,
      keepAliveMs: KEEP_ALIVE_MS,
    },
    serve: serveEndpoint(
      (request) => site.serve(request),
      (error) => options.log.error({ cause: causeOf(error) }, 'a request could not be answered'),
    ),
    refusal: refusalOf,
    log: options.log,
    metrics: options.metrics,
  })
  const { url } = listener
  site.listeningAt(url)

  return {
    url,
    readiness: () => site.readiness(isDraining),
    replace: (content) => site.replace(content),
    drain: async (graceMs = DRAIN_GRACE_MS) => {
      isDraining = true
      listener.stop()
      await listener.emptied(graceMs)
      await listener.close()
    },
  }
}
