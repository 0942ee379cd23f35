import { causeOf } from '../core/index.ts'
import { openListener, parseListenAddress, serveEndpoint } from '../listen/index.ts'
import type { Readiness } from '../ops/index.ts'
import { refusalOf } from './gate.ts'
import { createSite, type RegistryContent, type SiteOptions } from './site.ts'

export type RegistryOptions = SiteOptions & {
  /** `host:port`, `:port`, `[::1]:port` or `unix:/path`; port 0 takes a free one. */
  readonly address: string
  /** How long a client may take to send its headers, in milliseconds; 408 after it. Default 10 s, seen within a second. */
  readonly headersTimeoutMs?: number
}

export interface RegistryServer {
  /** `http://host:port` with the real port, or `unix:/path`. */
  readonly url: string
  /** 503 without data or while draining, degraded while old data serve or entries are left out (decisions §7, Registry file). */
  readiness(): Readiness
  /** Requests from now on get other content; those under way end with what they began with. */
  replace(content: RegistryContent): void
  /**
   * Takes no new connections, lets answers under way finish for up to `graceMs` milliseconds (default 10 s), then closes
   * what is left.
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
 * Starts the registry's main server. Rejects with `config_error` when the address is none or can't be bound. The sources stay whoever opened them's to close.
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
