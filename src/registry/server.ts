import { createServer, type Server } from 'node:http'
import { bind, parseListenAddress } from '../listen/index.ts'
import type { Readiness } from '../ops/index.ts'
import { challengeOf } from './access.ts'
import { createApi, type ApiOptions } from './api.ts'
import { admit, refuseMalformed } from './gate.ts'

export interface RegistryOptions extends Omit<ApiOptions, 'documents'> {
  /** `host:port`, `:port`, `[::1]:port` or `unix:/path`; port 0 takes a free one. */
  readonly address: string
  /** Discovery documents by path, made when the server's own URL is known. */
  readonly documentsFor: (url: string) => ReadonlyMap<string, object>
  /** How long a client may take to send its headers, in milliseconds; 408 after it. Default 10 s, seen within a second. */
  readonly headersTimeoutMs?: number
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
const DRAIN_LOOK_MS = 50

function close(server: Server, graceMs: number): Promise<void> {
  return new Promise((resolve) => {
    // A connection that was busy when the draining began becomes idle a moment later.
    const looking = setInterval(() => server.closeIdleConnections(), DRAIN_LOOK_MS)
    const force = setTimeout(() => server.closeAllConnections(), graceMs)
    server.close(() => {
      clearInterval(looking)
      clearTimeout(force)
      resolve()
    })
    server.closeIdleConnections()
  })
}

/**
 * Starts the registry's main server. Rejects with `config_error` when the address is none or can't be bound. The sources stay whoever opened them's to close.
 */
export async function startRegistry(options: RegistryOptions): Promise<RegistryServer> {
  const listen = parseListenAddress(options.address)
  let documents: ReadonlyMap<string, string> = new Map()
  let isDraining = false
  const api = await createApi({ ...options, documents: () => documents })
  const challenge = (failure: Parameters<typeof challengeOf>[1]) => challengeOf(options.access, failure)

  const server = createServer(
    {
      maxHeaderSize: MAX_HEADER_BYTES,
      headersTimeout: options.headersTimeoutMs ?? HEADERS_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      keepAliveTimeout: KEEP_ALIVE_MS,
      connectionsCheckingInterval: 1_000,
    },
    (request, response) => {
      if (isDraining) response.setHeader('connection', 'close')
      if (admit(request, response, challenge)) api.routing(request, response)
    },
  )
  server.on('clientError', refuseMalformed)
  const url = await bind(server, listen)
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
      await close(server, graceMs)
      await api.close()
    },
  }
}
