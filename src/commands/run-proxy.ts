import { randomBytes } from 'node:crypto'
import { type Clock, Secret } from '../core/index.ts'
import { startOps } from '../ops/index.ts'
import { createProxy, type Proxy, type Runtime } from '../proxy/index.ts'
import type { ResolvedProxy, ResolvedRoute } from '../resources/index.ts'
import { adminEndpoints, type ReloadResult } from './admin.ts'
import { openAdminToken } from './admin-token.ts'
import { buildCandidate, type Candidate } from './candidate.ts'
import { type Closers, whole } from './closers.ts'
import { loadProxyConfig, type ProxySources } from './load-config.ts'
import type { ReportingLog } from './logging.ts'
import { createServices, type Services } from './proxy-services.ts'
import { readinessOf } from './readiness.ts'
import { createReloader, type Reloader } from './reloader.ts'
import { openTlsMaterial } from './tls-material.ts'
import { VERSION } from './version.ts'

export interface RunProxyOptions extends ProxySources {
  /** Where STS is, for all routes; else as the config says, else `AWS_ENDPOINT_URL_STS`, else by region. */
  readonly stsEndpoint?: string | undefined
  /** `GET /decisions` shows claim values. Default false. */
  readonly showClaims?: boolean
  /** How long answers may go on after a stop, in milliseconds. Default 10 s. */
  readonly drainGraceMs?: number
  readonly env: Readonly<Record<string, string | undefined>>
  readonly log: ReportingLog
  readonly clock?: Clock
}

export interface RunningProxy {
  /** `http://127.0.0.1:8080`, or `unix:/path`. */
  readonly url: string
  readonly adminUrl: string
  /** Of the configuration that it started with. */
  readonly routes: readonly ResolvedRoute[]
  readonly reload: Reloader['reload']
  /** Drains and lets go of everything. */
  close(): Promise<void>
}

const DEFAULT_DRAIN_GRACE_MS = 10_000
const STOPPING: ReloadResult = { ok: false, problems: ['the proxy is shutting down'] }
const NOTHING: Runtime = { routes: [], localHandlers: [], close: () => Promise.resolve() }

/**
 * Runs the proxy: reads the configuration, listens, and follows changes of every file that it read. Throws `ConfigError`
 * with all problems, and `Failure` config_error when an address can't be bound; nothing is left open then.
 */
export function runProxy(options: RunProxyOptions): Promise<RunningProxy> {
  return whole((closers) => start(options, closers))
}

async function start(options: RunProxyOptions, closers: Closers): Promise<RunningProxy> {
  const { log, clock = { now: () => Date.now() } } = options
  const first = await loadProxyConfig(options)
  const { secretsDirectory, maxCredentials } = first
  const services = createServices({ ...options, secretsDirectory, maxCredentials, clock })
  const { metrics, cache, decisions, stores } = services
  closers.keep(stores)
  const proxy = await listen(first, services, closers)
  let isDraining = false
  closers.keep({ close: () => ((isDraining = true), proxy.drain(options.drainGraceMs ?? DEFAULT_DRAIN_GRACE_MS)) })

  let current = install(first, proxy, services)
  const reloader = closers.keep(
    createReloader({
      sources: options,
      current: () => current.config,
      install: (next) => void (current = install(next, proxy, services)),
      log,
      metrics,
    }),
  )
  const adminToken = openAdminToken(first.admin.tokenFile, closers, log)
  const admin = await startOps({
    address: first.admin.address,
    version: VERSION,
    readiness: () => readinessOf(current.config, current.held, isDraining),
    metrics: () => metrics.render(),
    guarded: {
      endpoints: adminEndpoints({
        config: () => current.config,
        cache,
        reload: () => (isDraining ? Promise.resolve(STOPPING) : reloader.reload()),
        decisions: () => decisions.list(),
      }),
      ...(adminToken === undefined ? {} : { token: adminToken }),
    },
    log,
  })
  log.info({ url: proxy.url, admin: admin.url, routes: first.routes.length, version: VERSION }, 'listening')
  const close = async (): Promise<void> => {
    // The admin listener goes last: it says that the proxy is draining while it drains, and its last figures are read.
    try {
      await closers.close()
    } finally {
      await admin.close()
    }
  }
  const { url } = proxy
  return { url, adminUrl: admin.url, routes: first.routes, reload: () => reloader.reload(), close }
}

/** The listener, which serves nothing yet: what routes are called there depends on where it is. */
async function listen(config: ResolvedProxy, services: Services, closers: Closers): Promise<Proxy> {
  const { clock, log, metrics } = services
  const secrets = services.secrets.hold()
  closers.keep({ close: () => secrets.release() })
  const ephemeralKey = new Secret(randomBytes(32).toString('base64url'))
  const { sessionKeySecretRef } = config
  const sessionKey = sessionKeySecretRef === undefined ? undefined : secrets.handle(sessionKeySecretRef)
  const { tls, ...address } = config.listen
  const tlsMaterial = tls === undefined ? undefined : closers.keep(openTlsMaterial(tls, { log, clock }))
  return createProxy({
    listen: { ...address, tls: tlsMaterial },
    runtime: NOTHING,
    clock,
    log,
    metrics,
    sessionKey: () => sessionKey?.current() ?? ephemeralKey,
    onRouteGone: ({ name, type }) => metrics.removeSeries({ route: name, type }),
  })
}

/** Puts a configuration in force as a whole. Throws before anything has changed when it can't be. */
function install(next: ResolvedProxy, proxy: Proxy, services: Services): Candidate {
  const { cache, log } = services
  const candidate = buildCandidate(next, proxy.url, services)
  try {
    proxy.swap(candidate.runtime)
  } catch (error) {
    candidate.refuse()
    throw error
  }
  candidate.adopt()
  cache.retireConfigs(new Map(next.routes.map(({ auth }) => [`${auth.namespace}/${auth.name}`, auth.configHash])))
  for (const warning of next.warnings) log.warn({}, warning)
  return candidate
}
