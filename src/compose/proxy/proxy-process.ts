import type { Common } from './proxy-common.ts'
import { randomBytes } from 'node:crypto'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { CacheListing, PurgeFilter } from '../../cache/index.ts'
import { type Clock, Failure, type RequestObserver, Secret } from '../../core/index.ts'
import type { Readiness } from '../../ops/index.ts'
import { IN_PROCESS, type TlsMaterial } from '../../listen/index.ts'
import { createProxy, type Proxy, type Runtime } from '../../proxy/index.ts'
import type { ResolvedProxy } from '../../load/index.ts'
import type { ProxyControls, Purged, ReloadResult } from '../admin.ts'
import { buildCandidate, type Candidate } from './candidate.ts'
import { placed, placedListener } from '../config-error.ts'
import type { Inspector } from '../../inspect/index.ts'
import { INSPECT_BYTES, openInspection, type TryUsers } from './inspection.ts'
import type { ProxySources } from '../load-config.ts'
import { readProxyConfig } from './read-config.ts'
import { loadModules } from './lazy-modules.ts'
import type { ReportingLog, OpenMetrics } from '../../report/index.ts'
import { type MemoryOptions, type MemoryShares, memorySharesOf } from '../memory-limit.ts'
import { createServices, type Services } from './proxy-services.ts'
import { endingCredentials, noteEnds } from './client-credentials.ts'
import { readinessOf } from './readiness.ts'
import { createReloader } from './reloader.ts'
import { observersOf } from '../observers.ts'
import { tracesAreOff, traceSettings } from '../trace-settings.ts'
import { VERSION } from '../version.ts'
import { createTracing, openProcessReceiverClient } from './tracing.ts'
import { openTlsMaterial } from '../tls-material.ts'

export interface ProxyProcessOptions extends ProxySources, MemoryOptions {
  /** Where STS is, for all routes; else as the config says, else `AWS_ENDPOINT_URL_STS`, else by region. */
  readonly stsEndpoint?: string | undefined
  /** `GET /decisions` shows claim values. Default false. */
  readonly showClaims?: boolean
  /** How long answers may go on after a stop, in milliseconds. Default 10 s. */
  readonly drainGraceMs?: number
  /** About how many bytes of finished requests the inspector keeps. Default 8 MiB. */
  readonly inspectBytes?: number | undefined
  /** Users that requests can be tried as from the inspector. Default: none. */
  readonly tryUsers?: TryUsers | undefined
  /** Log lines of refused requests name the client's address. Default true. */
  readonly logsClients?: boolean | undefined
  /** Listens nowhere, whatever the files say: only `connect` leads in. Default false. */
  readonly isInline?: boolean
  readonly env: Readonly<Record<string, string | undefined>>
  readonly log: ReportingLog
  readonly clock?: Clock
  /** Of circuits and rests of other services. Default `STEADY_CLOCK`. */
  readonly steadyClock?: Clock
}

/** One process that proxies, and how it is asked. */
export interface ProxyProcess extends ProxyControls {
  /** `http://127.0.0.1:8080`, or `unix:/path`. */
  readonly url: string
  /** The client end of a new connection, where it `isInline`. */
  connect(): Duplex
  /** Serves a connection that a supervisor has accepted. False once it drains. */
  take(socket: Socket): boolean
  /** The configuration that it started with. */
  readonly first: ResolvedProxy
  readonly memory: MemoryShares
  readonly openMetrics: OpenMetrics
  /** Undefined where it is off. */
  readonly inspector: Inspector | undefined
  config(): ResolvedProxy
  readiness(): Readiness
  cache(): CacheListing
  purge(filter: PurgeFilter): Promise<Purged>
  decisions(): readonly object[]
}

/** Milliseconds. */
export const DEFAULT_DRAIN_GRACE_MS = 10_000
/** Whoever connects from inside is one client, and may take its time: what it does not read waits, and takes no more memory. */
const INLINE_LISTEN = { address: IN_PROCESS, allowedHosts: ['localhost'] }
const PATIENT = Number.POSITIVE_INFINITY
const INLINE_DEADLINES = { unreadAnswerMs: PATIENT, unreadBodyMs: PATIENT, bodyIdleMs: PATIENT }
const STOPPING: ReloadResult = { ok: false, problems: ['the proxy is shutting down'] }
const NOTHING: Runtime = { routes: [], localHandlers: [], close: () => Promise.resolve() }

/**
 * Reads the configuration, listens, and follows changes of every file that it read; disposal of `stack` drains it. Throws
 * `ConfigError` with all problems, and `Failure` config_error when the address can't be bound.
 */
export async function startProxy(
  options: ProxyProcessOptions,
  stack: AsyncDisposableStack,
  common?: Common,
): Promise<ProxyProcess> {
  const { log, clock = { now: () => Date.now() } } = options
  const loaded = await readProxyConfig(options, { clock })
  const first = { ...loaded, ...common?.settings }
  await common?.prepare(first)
  const modules = await loadModules(first)
  const { secretsDirectory, maxCredentials } = first
  const tracing = createTracing(tracesAreOff(options.env))
  const memory = memorySharesOf(options, first.listen.bufferedBodiesBytes)
  const services = createServices({ ...options, secretsDirectory, maxCredentials, memory, clock, common, tracing })
  await openTraces(options.env, services, stack)
  const { metrics, cache, decisions, stores } = services
  stack.defer(() => stores.close())
  const { isInline = false } = options
  const tls = isInline ? undefined : first.listen.tls
  const { ticketKeys } = common ?? {}
  const tlsMaterial =
    tls === undefined ? undefined : stack.adopt(openTlsMaterial(tls, { log, clock, ticketKeys }), (one) => one.close())
  // Each worker would show its own requests only; without listeners nobody could look.
  const mode = common === undefined && !isInline ? first.admin.inspector : 'off'
  const inspector = openInspection(mode, () => inspected, {
    maxBytes: options.inspectBytes ?? INSPECT_BYTES,
    showClaims: options.showClaims ?? false,
    clock,
    log,
    decisions,
    tryUsers: options.tryUsers,
  })
  if (inspector !== undefined) stack.defer(() => inspector.close())
  const how = {
    logsClients: options.logsClients,
    memory,
    common,
    isInline,
    tls: tlsMaterial,
    observer: observersOf([inspector?.observer, tracing.observer]),
  }
  const proxy = await placedListener(first.places, 'listen', () => listen(first, services, stack, how))
  let isDraining = false
  stack.defer(() => {
    isDraining = true
    return proxy.drain(options.drainGraceMs ?? DEFAULT_DRAIN_GRACE_MS)
  })

  // All at once: whoever has connected already must not hear that there is no such route.
  const begun = await buildCandidate(first, proxy.url, services, modules, () => Promise.resolve())
  let current = install(begun, proxy, services)
  // The listener is open: until then requests hear 503 instead of a route that is not there.
  await current.prepared()
  const reloader = stack.adopt(
    createReloader({
      sources: options,
      current: () => current.config,
      prepare: common?.prepare,
      install: async (next) => {
        const candidate = await buildCandidate(next, proxy.url, services, await loadModules(next))
        await candidate.prepared()
        if (isDraining) {
          candidate.refuse()
          throw new Failure('draining')
        }
        current = install(candidate, proxy, services)
      },
      clock,
      log,
      metrics,
    }),
    (one) => one.close(),
  )
  const told = (): OpenMetrics => {
    noteEnds(endingCredentials(current.config, current.held), metrics)
    return metrics
  }
  const running: ProxyProcess = {
    url: proxy.url,
    connect: () => proxy.connect(),
    take: (socket) => proxy.take(socket),
    first,
    memory,
    inspector,
    openMetrics: { ...metrics, snapshot: () => told().snapshot() },
    config: () => current.config,
    readiness: () => readinessOf(current.config, current.held, isDraining),
    metrics: () => told().render(),
    cache: () => cache.list(),
    async purge(filter) {
      const { purged, told } = cache.purge(filter)
      const receivers = await told
      return told === undefined ? { purged } : { purged, isTold: receivers !== undefined, receivers }
    },
    decisions: () => decisions.list(),
    reload: () => (isDraining ? Promise.resolve(STOPPING) : reloader.reload()),
  }
  const inspected = { ...running, certificate: () => tlsMaterial?.current().cert }
  return running
}

/** Opens the receiver of traces that the environment names, if any. Throws `ConfigError`. */
async function openTraces(
  env: ProxyProcessOptions['env'],
  { tracing, receivers, clock, log }: Services,
  stack: AsyncDisposableStack,
): Promise<void> {
  const settings = traceSettings(env)
  if (settings === undefined) return
  const { createTelemetry, openProcessReceiver } = await import('../../telemetry/index.ts')
  const outbound = openProcessReceiverClient(settings, { ...receivers, clock })
  tracing.own(
    createTelemetry(
      stack.adopt(openProcessReceiver(settings, { outbound, log, version: VERSION }), (one) => one.close()),
    ),
  )
}

interface ListenerParts {
  readonly memory: MemoryShares
  readonly common: Common | undefined
  readonly isInline: boolean
  readonly tls: TlsMaterial | undefined
  readonly observer: RequestObserver | undefined
  readonly logsClients: boolean | undefined
}

/** The listener, which serves nothing yet: what routes are called there depends on where it is. */
async function listen(
  config: ResolvedProxy,
  services: Services,
  stack: AsyncDisposableStack,
  { memory, common, isInline, tls, observer, logsClients }: ListenerParts,
): Promise<Proxy> {
  const { clock, log, metrics } = services
  const secrets = services.secrets.hold()
  stack.defer(() => secrets.release())
  const ephemeralKey = common?.sessionKey ?? new Secret(randomBytes(32).toString('base64url'))
  const { sessionKeySecretRef } = config
  const sessionKey = sessionKeySecretRef === undefined ? undefined : secrets.handle(sessionKeySecretRef, 'bytes')
  return createProxy({
    listen: {
      ...config.listen,
      bufferedBodiesBytes: memory.keptBodiesBytes,
      // Whoever connects from inside is one client.
      unreadAnswersBytes: isInline ? PATIENT : memory.unreadAnswersBytes,
      tls,
      acceptedAt: common?.url,
      ...(isInline ? INLINE_LISTEN : {}),
    },
    ...(isInline ? { deadlines: INLINE_DEADLINES } : {}),
    runtime: NOTHING,
    observer,
    clock,
    log,
    logsClients,
    metrics,
    sessionKey: () => sessionKey?.current() ?? ephemeralKey,
    onRouteGone: ({ name, type }) => metrics.removeSeries({ route: name, type }),
  })
}

/** Puts a configuration in force as a whole. Throws before anything has changed when it can't be. */
function install(candidate: Candidate, proxy: Proxy, { cache, log }: Services): Candidate {
  const next = candidate.config
  try {
    placed(next.places, { process: 'routes' }, () => proxy.swap(candidate.runtime))
  } catch (error) {
    candidate.refuse()
    throw error
  }
  candidate.adopt()
  cache.retireConfigs(new Map(next.routes.map(({ auth }) => [`${auth.namespace}/${auth.name}`, auth.configHash])))
  for (const warning of next.warnings) log.warn({}, warning)
  return candidate
}
