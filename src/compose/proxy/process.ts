import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { CacheListing, PurgeFilter } from '../../cache/index.ts'
import type { ConnectionFilter, ConnectionList, ListFilter } from '../../connections/index.ts'
import { type Clock, Failure, type MonotonicClock, SYSTEM_CLOCK } from '../../core/index.ts'
import { INSPECT_PATH } from '../../inspect/index.ts'
import { parseListenAddress } from '../../listen/index.ts'
import type { ResolvedProxy } from '../../load/index.ts'
import type { Pages, Readiness } from '../../ops/index.ts'
import type { Proxy } from '../../proxy/index.ts'
import type { OpenMetrics, ReportingLog } from '../../report/index.ts'
import { authsOf, type ResolvedRoute } from '../../resources/index.ts'
import type { ProxyControls, Purged, ReloadResult } from '../admin.ts'
import { ConfigError, placed, placedListener } from '../config-error.ts'
import type { ProxySources } from '../load-config.ts'
import { type MemoryOptions, type MemoryShares, memorySharesOf } from '../memory-limit.ts'
import { observersOf } from '../observers.ts'
import { openTlsMaterial } from '../tls-material.ts'
import { tracesAreOff } from '../trace-settings.ts'
import { VERSION } from '../version.ts'
import { buildCandidate, type Candidate } from './configuration.ts'
import { INSPECT_BYTES, inspectorPages, openInspector, openListener, startAdmin, type TryUsers } from './listener.ts'
import { loadModules } from './pools.ts'
import { readProxyConfig } from './read-config.ts'
import { endingCredentials, noteEnds, readinessOf } from './readiness.ts'
import { createReloader, type Reloader } from './reload.ts'
import { RemoteWatch, type UnreachableRemote } from './remote-watch.ts'
import { type Common, createServices, type Services } from './services.ts'
import { createTracing, openTraces } from './tracing.ts'

export interface ProxyProcessOptions extends ProxySources, MemoryOptions {
  /** STS endpoint of all routes. Default: that of the config, else `AWS_ENDPOINT_URL_STS`, else the regional one. */
  readonly stsEndpoint?: string | undefined
  /** `GET /decisions` shows claim values. Default false. */
  readonly showClaims?: boolean
  /** Grace period for in-flight responses after a stop, in milliseconds. Default 10 s. */
  readonly drainGraceMs?: number
  /** Approximate size of the requests that the inspector keeps, in bytes. Default 8 MiB. */
  readonly inspectBytes?: number | undefined
  /** Demo users for test requests from the inspector. Default: none. */
  readonly tryUsers?: TryUsers | undefined
  /** Log lines of rejected requests contain the client address. Default true. */
  readonly logsClients?: boolean | undefined
  /** Opens no listener, whatever the files say; `connect` is the only entry. Default false. */
  readonly isInline?: boolean
  readonly env: Readonly<Record<string, string | undefined>>
  readonly log: ReportingLog
  readonly clock?: Clock
  /** Clock of circuit breakers and cool-downs. Default `MONOTONIC_CLOCK`. */
  readonly monotonicClock?: MonotonicClock
}

/** One proxy process and its control operations. */
export interface ProxyProcess extends ProxyControls {
  /** `http://127.0.0.1:8080`, or `unix:/path`. */
  readonly url: string
  /** Opens a connection and returns the client end; only where `isInline`. */
  connect(): Duplex
  /** Serves a connection that the supervisor accepted. Returns false while draining. */
  take(socket: Socket): boolean
  /** The initial configuration. */
  readonly first: ResolvedProxy
  readonly memory: MemoryShares
  readonly openMetrics: OpenMetrics
  /** URL of the inspector; undefined if it is off. */
  readonly pages: Pages | undefined
  config(): ResolvedProxy
  readiness(): Readiness
  cache(): CacheListing
  purge(filter: PurgeFilter): Promise<Purged>
  /** Ends connections of one caller; returns their number. */
  disconnect(filter: ConnectionFilter): Promise<number>
  connections(filter: ListFilter): Promise<ConnectionList>
  decisions(): readonly object[]
}

/** In milliseconds. */
export const DEFAULT_DRAIN_GRACE_MS = 10_000
const STOPPING: ReloadResult = { ok: false, problems: ['the proxy is shutting down'] }

/**
 * Reads the configuration, listens, and watches every file that it read; disposing `stack` drains the proxy. Throws
 * `ConfigError` with all problems, and `Failure` config_error if the address can't be bound.
 */
export async function startProxy(
  options: ProxyProcessOptions,
  stack: AsyncDisposableStack,
  common?: Common,
): Promise<ProxyProcess> {
  const { log, clock = SYSTEM_CLOCK, isInline = false, logsClients, tryUsers } = options
  const loaded = await readProxyConfig(options, { clock })
  const first = { ...loaded, ...common?.settings }
  await common?.prepare(first)
  const modules = await loadModules(first)
  const { secretsDirectory, maxCredentials } = first
  const tracing = createTracing(tracesAreOff(options.env))
  const memory = memorySharesOf(options, first.listen.bufferedBodiesBytes)
  const services = createServices({ ...options, secretsDirectory, maxCredentials, memory, clock, common, tracing })
  const { metrics, cache, decisions, stores } = services
  await openTraces(options.env, tracing, { ...services.receivers, clock }, stack)
  stack.defer(() => stores.close())
  stack.defer(() => services.audit.close())
  const { ticketKeys } = common ?? {}
  const tls =
    isInline || first.listen.tls === undefined
      ? undefined
      : stack.adopt(openTlsMaterial(first.listen.tls, { log, clock, ticketKeys }), (one) => one.close())
  // Each worker would show only its own requests; without a listener the inspector is unreachable.
  const mode = common === undefined && !isInline ? first.admin.inspector : 'off'
  const { inspectBytes: maxBytes = INSPECT_BYTES, showClaims = false } = options
  const inspector = openInspector(mode, { maxBytes, showClaims, clock, log, decisions })
  stack.defer(() => inspector?.close())
  const observer = observersOf([services.audit.observer, inspector?.observer, tracing.observer])
  const proxy = await placedListener(first.places, 'listen', () =>
    openListener(first, services, stack, { logsClients, memory, common, isInline, tls, observer }),
  )
  stack.defer(() => proxy.drain(options.drainGraceMs ?? DEFAULT_DRAIN_GRACE_MS))

  // All routes at once: a client that has already connected must not get a 404.
  const begun = await buildCandidate(first, proxy.url, services, modules, () => Promise.resolve())
  const active = stack.adopt(new ActiveConfiguration(begun, proxy, services), (one) => one.stop())
  // The listener is open: requests get 503 instead of 404 until the routes are installed.
  await begun.prepared()
  const reloader = stack.adopt(
    createReloader({
      sources: options,
      current: () => active.config,
      prepare: common?.prepare,
      install: (next) => active.replace(next),
      clock,
      log,
      metrics,
      audit: services.audit,
    }),
    (one) => one.close(),
  )
  const withEnds = (): OpenMetrics => {
    noteEnds(endingCredentials(active.config, active.resources), metrics)
    return metrics
  }
  const running = {
    url: proxy.url,
    connect: () => proxy.connect(),
    take: (socket: Socket) => proxy.take(socket),
    first,
    memory,
    openMetrics: { ...metrics, snapshot: () => withEnds().snapshot() },
    config: () => active.config,
    readiness: () => readinessOf(active.config, active.resources, active.isStopped, active.unreachable),
    metrics: () => withEnds().render(),
    cache: () => cache.list(),
    async purge(filter: PurgeFilter) {
      const { purged, notified } = cache.purge(filter)
      const details = { ...filter, purged }
      services.audit.notice({ type: 'cache_purged', outcome: 'success', component: 'proxy', details })
      const receivers = await notified
      return notified === undefined ? { purged } : { purged, isNotified: receivers !== undefined, receivers }
    },
    disconnect: async (filter: ConnectionFilter) => (await active.resources.connections?.disconnect(filter)) ?? 0,
    connections: async (filter: ListFilter) =>
      (await active.resources.connections?.list(filter)) ?? { providers: {}, callers: [] },
    decisions: () => decisions.list(),
    reload() {
      services.audit.reopen()
      return active.isStopped ? Promise.resolve(STOPPING) : reloader.reload()
    },
  }
  const pages = inspector && inspectorPages(inspector, running, () => tls?.current().cert, tryUsers)
  return { ...running, pages }
}

/** The active configuration and its replacement by reloads. */
class ActiveConfiguration {
  readonly #proxy: Proxy
  readonly #services: Services
  #candidate: Candidate
  #remotes: RemoteWatch | undefined
  #isStopped = false

  /** Installs the initial configuration. On an error nothing has changed. */
  constructor(first: Candidate, proxy: Proxy, services: Services) {
    this.#proxy = proxy
    this.#services = services
    this.#candidate = first
    this.#install(first)
  }

  get config(): ResolvedProxy {
    return this.#candidate.config
  }

  get resources(): Candidate['resources'] {
    return this.#candidate.resources
  }

  /** Unreachable remote servers; undefined if the watch is off or the first probe is pending. */
  get unreachable(): readonly UnreachableRemote[] | undefined {
    return this.#remotes?.unreachable
  }

  get isStopped(): boolean {
    return this.#isStopped
  }

  /** Builds and installs `next` atomically. Rejects if that fails or after `stop`; nothing has changed then. */
  async replace(next: ResolvedProxy): Promise<void> {
    const candidate = await buildCandidate(next, this.#proxy.url, this.#services, await loadModules(next))
    await candidate.prepared()
    if (this.#isStopped) {
      candidate.discard()
      throw new Failure('draining')
    }
    this.#install(candidate)
    this.#candidate = candidate
  }

  /** Ends replacements. */
  stop(): void {
    this.#isStopped = true
    this.#remotes?.close()
  }

  #install(candidate: Candidate): void {
    const { cache, log, egressProxy } = this.#services
    const { config, runtime } = candidate
    try {
      placed(config.places, { process: 'routes' }, () => this.#proxy.swap(runtime))
    } catch (error) {
      candidate.discard()
      throw error
    }
    candidate.activate()
    this.#remotes?.close()
    // Only the operator enables this: other proxies open no connection without a caller.
    this.#remotes = config.revision === undefined ? undefined : new RemoteWatch(config, egressProxy)
    this.#remotes?.start()
    cache.retireConfigs(
      new Map(config.routes.flatMap(authsOf).map((auth) => [`${auth.namespace}/${auth.name}`, auth.configHash])),
    )
    for (const warning of config.warnings) log.warn({}, warning)
  }
}

export type RunProxyOptions = ProxyProcessOptions

export interface RunningProxy {
  /** `http://127.0.0.1:8080`, or `unix:/path`. */
  readonly url: string
  readonly adminUrl: string
  /** URL of the inspector; undefined if it is off. */
  readonly inspectUrl: string | undefined
  /** Routes of the initial configuration. */
  readonly routes: readonly ResolvedRoute[]
  readonly reload: Reloader['reload']
  /** Drains and closes everything. */
  close(): Promise<void>
}

/**
 * Runs the proxy: reads the configuration, listens, and watches every file that it read. Throws `ConfigError`
 * with all problems, and `Failure` config_error if an address can't be bound; nothing is left open then.
 */
export async function runProxy(options: RunProxyOptions): Promise<RunningProxy> {
  await using opening = new AsyncDisposableStack()
  const { log } = options
  const proxy = await startProxy(options, opening)
  const { url, first, memory, pages } = proxy
  const admin = await placedListener(first.places, 'admin', () => startAdmin(first.admin, proxy, log, opening, pages))
  log.info({ url, admin: admin.url, routes: first.routes.length, ...memory, version: VERSION }, 'listening')
  const opened = opening.move()
  const close = async (): Promise<void> => {
    // The admin listener closes last: it reports the drain and serves the final metrics.
    try {
      await opened.disposeAsync()
    } finally {
      await admin.close()
    }
  }
  // An inspector that other machines can reach requires a token.
  const isServed = first.admin.tokenFile !== undefined || parseListenAddress(first.admin.address).isLoopback
  const inspectUrl = pages !== undefined && isServed ? `${admin.url}${INSPECT_PATH}` : undefined
  return { url, adminUrl: admin.url, inspectUrl, routes: first.routes, reload: () => proxy.reload(), close }
}

export interface InlineProxyOptions extends Omit<
  ProxyProcessOptions,
  'listen' | 'drainGraceMs' | 'isInline' | 'onlyRoute'
> {
  /** Name of the route; optional if there is only one. */
  readonly route?: string | undefined
}

/** The pipeline of one route without a listener, for this process. */
export interface InlineProxy {
  /** Opens a connection and returns the client end. */
  connect(): Duplex
  /** Path of the route; a reload may change it. */
  path(): string
  readonly route: ResolvedRoute
  /** `connections.baseUrl`. */
  readonly pages: URL | undefined
  close(): Promise<void>
}

/** Only this process connects, so the rules of a loopback bind apply whatever the files say. */
const LISTEN = '127.0.0.1:0'

/**
 * Runs the proxy without a listener, and watches every file that it read. Throws `ConfigError` with all
 * problems; nothing is left open then.
 */
export async function runInlineProxy(options: InlineProxyOptions): Promise<InlineProxy> {
  await using opening = new AsyncDisposableStack()
  const proxy = await startProxy(
    { ...options, onlyRoute: options.route, listen: LISTEN, drainGraceMs: 0, isInline: true },
    opening,
  )
  const route = chosen(proxy.first.routes, options.route)
  const pages = proxy.first.connections?.spec.baseUrl
  const opened = opening.move()
  return {
    connect: () => proxy.connect(),
    path: () => proxy.config().routes.find(({ name }) => name === route.name)?.path ?? route.path,
    route,
    pages: pages === undefined ? undefined : new URL(pages),
    close: () => opened.disposeAsync(),
  }
}

/** Selects the route. Throws `ConfigError` if the choice is ambiguous or the route is missing. */
function chosen(routes: readonly ResolvedRoute[], wanted: string | undefined): ResolvedRoute {
  const names = routes.map(({ name }) => name).join(', ')
  const [only] = routes
  if (wanted === undefined && routes.length === 1 && only !== undefined) return only
  if (wanted === undefined) throw new ConfigError([`several routes: choose one with --route NAME: ${names}`])
  const found = routes.find(({ name }) => name === wanted)
  if (found === undefined) throw new ConfigError([`no route ${JSON.stringify(wanted)}; available routes: ${names}`])
  return found
}
