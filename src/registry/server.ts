import type { Clock } from '../core/index.ts'
import { openListener, parseListenAddress } from '../listen/index.ts'
import type { Readiness } from '../ops/index.ts'
import { challengeOf } from './access.ts'
import { createApi, type ApiOptions } from './api.ts'
import { admit, refusalOf } from './gate.ts'

export interface RegistryOptions extends Omit<ApiOptions, 'documents'> {
  /** `host:port`, `:port`, `[::1]:port` or `unix:/path`; port 0 takes a free one. */
  readonly address: string
  /** Discovery documents by path, made when the server's own URL is known. */
  readonly documentsFor: (url: string) => ReadonlyMap<string, object>
  /** How long a client may take to send its headers, in milliseconds; 408 after it. Default 10 s, seen within a second. */
  readonly headersTimeoutMs?: number
  /** Default: the time. */
  readonly clock?: Clock
}

export interface RegistryServer {
  /** `http://host:port` with the real port, or `unix:/path`. */
  readonly url: string
  /** 503 without data or while draining, degraded while old data serve (decisions §7, Registry file). */
  readiness(): Readiness
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
  let documents: ReadonlyMap<string, string> = new Map()
  let isDraining = false
  const api = await createApi({ ...options, documents: () => documents })
  const challenge = (failure: Parameters<typeof challengeOf>[1]) => challengeOf(options.access, failure)

  const listener = await openListener({
    address: parseListenAddress(options.address),
    headerLimitBytes: MAX_HEADER_BYTES,
    deadlines: {
      headersMs: options.headersTimeoutMs ?? HEADERS_TIMEOUT_MS,
      requestMs: REQUEST_TIMEOUT_MS,
      keepAliveMs: KEEP_ALIVE_MS,
    },
    serve(request, response) {
      if (admit(request, response, challenge)) api.routing(request, response)
    },
    refusal: refusalOf,
    clock: options.clock ?? Date,
    log: options.log,
    metrics: options.metrics,
  })
  const { url } = listener
  documents = new Map([...options.documentsFor(url)].map(([path, document]) => [path, JSON.stringify(document)]))

  const readiness = (): Readiness => {
    const states = [...options.registries].map(([name, registry]) => [name, registry.state()] as const)
    const registries = Object.fromEntries(
      states.map(([name, { snapshot, problem }]) => [
        name,
        { entries: snapshot?.entries.length ?? 0, ...(problem === undefined ? {} : { problem }) },
      ]),
    )
    if (isDraining) return { ok: false, detail: { draining: true, registries } }
    return {
      ok: states.every(([, { snapshot }]) => snapshot !== undefined),
      degraded: states.some(([, { problem }]) => problem !== undefined),
      detail: { registries },
    }
  }

  return {
    url,
    readiness,
    drain: async (graceMs = DRAIN_GRACE_MS) => {
      isDraining = true
      listener.stop()
      await listener.emptied(graceMs)
      await listener.close()
      await api.close()
    },
  }
}
