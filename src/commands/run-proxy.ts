import { randomBytes } from 'node:crypto'
import { createCredentialCache } from '../cache/index.ts'
import { type Clock, type Credential, type Log, Secret } from '../core/index.ts'
import { openWatchedFile } from '../files/index.ts'
import { createOutbound, createProtections } from '../net/index.ts'
import { createDecisionLog } from '../obtain/index.ts'
import { startOps } from '../ops/index.ts'
import { createProxy, type Runtime } from '../proxy/index.ts'
import type { ResolvedProxy } from '../resources/index.ts'
import { openSecrets } from '../secrets/index.ts'
import { adminEndpoints, type ReloadResult } from './admin.ts'
import { createAuthenticators } from './authenticators.ts'
import { openCaFiles } from './ca-files.ts'
import { type Closers, whole } from './closers.ts'
import { describeEgress, egressFrom } from './egress.ts'
import { loadProxyConfig, type ProxySources } from './load-config.ts'
import { countLostLines, type ReportingLog } from './logging.ts'
import { openMetrics } from './metrics.ts'
import { readinessOf } from './readiness.ts'
import { createReloader, type Reloader } from './reloader.ts'
import { buildRuntime, type RouteDeps } from './routes.ts'
import { stsEndpoints } from './sts-endpoint.ts'
import { openTlsMaterial } from './tls-material.ts'
import { VERSION } from './version.ts'

export interface RunProxyOptions extends ProxySources {
  /** Where STS is, for all routes; else as the config says, else `AWS_ENDPOINT_URL_STS`, else by region. */
  readonly stsEndpoint?: string | undefined
  /** `GET /decisions` shows claim values. Default false. */
  readonly showClaims?: boolean
  /** How long streams may go on after a stop, in milliseconds. Default 10 s. */
  readonly drainGraceMs?: number
  readonly env: Readonly<Record<string, string | undefined>>
  readonly log: ReportingLog
  readonly clock?: Clock
}

export interface RunningProxy {
  /** `http://127.0.0.1:8080`, or `unix:/path`. */
  readonly url: string
  readonly adminUrl: string
  readonly reload: Reloader['reload']
  /** Drains and lets go of everything. */
  close(): Promise<void>
}

const DEFAULT_DRAIN_GRACE_MS = 10_000
const MAX_TOKEN_FILE_BYTES = 64 * 1024
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
  const { log, env, clock = { now: () => Date.now() } } = options
  let config: ResolvedProxy = await loadProxyConfig(options)
  const metrics = openMetrics()
  countLostLines(log, metrics)
  const egressProxy = egressFrom(env)
  if (egressProxy !== undefined) log.info(describeEgress(egressProxy), 'connections go out through an egress proxy')

  const secrets = closers.keep(openSecrets(config.secretsDirectory, { log, metrics, clock }))
  const caFiles = closers.keep(openCaFiles(log))
  const cache = createCredentialCache<Credential>({ clock, metrics, random: Math.random })
  const decisions = createDecisionLog({ clock, showClaims: options.showClaims ?? false })
  const protections = createProtections({ clock, metrics })
  const outbound: RouteDeps['obtain']['outbound'] = (wanted) =>
    createOutbound({ ...wanted, clock, metrics, protections, ...(egressProxy === undefined ? {} : { egressProxy }) })
  const authenticators = createAuthenticators({ clock, log, metrics, outbound })
  closers.keep({ close: () => authenticators.retain([]) })
  const deps: RouteDeps = {
    clock,
    authenticators,
    decisions,
    egressProxy,
    obtain: {
      clock,
      log,
      metrics,
      random: Math.random,
      secrets,
      cache,
      outbound,
      caCertificate: (path) => caFiles.certificate(path),
      ...stsEndpoints(options.stsEndpoint, env),
    },
  }

  const ephemeralKey = new Secret(randomBytes(32).toString('base64url'))
  const { sessionKeySecretRef } = config
  const sessionKey = sessionKeySecretRef === undefined ? undefined : secrets.handle(sessionKeySecretRef)
  const { tls, ...listen } = config.listen
  const tlsMaterial = tls === undefined ? undefined : closers.keep(openTlsMaterial(tls, { log, clock }))
  const proxy = await createProxy({
    listen: { ...listen, tls: tlsMaterial },
    runtime: NOTHING,
    clock,
    log,
    metrics,
    sessionKey: () => sessionKey?.current() ?? ephemeralKey,
  })
  const grace = options.drainGraceMs ?? DEFAULT_DRAIN_GRACE_MS
  let isDraining = false
  closers.keep({ close: () => ((isDraining = true), proxy.drain(grace)) })

  const install = (next: ResolvedProxy): void => {
    const runtime = buildRuntime(next, proxy.url, deps)
    proxy.swap({
      ...runtime,
      close: async () => {
        await runtime.close()
        await authenticators.retain(config.routes.map((route) => route.callers))
      },
    })
    config = next
    cache.retireConfigs(new Map(next.routes.map(({ auth }) => [`${auth.namespace}/${auth.name}`, auth.configHash])))
    for (const warning of next.warnings) log.warn({}, warning)
  }
  install(config)

  const reloader = closers.keep(createReloader({ sources: options, current: () => config, install, log, metrics }))
  const adminToken = openAdminToken(config.admin.tokenFile, closers, log)
  const admin = await startOps({
    address: config.admin.address,
    version: VERSION,
    readiness: () => readinessOf(config, { secrets, isDraining }),
    metrics: () => metrics.render(),
    guarded: {
      endpoints: adminEndpoints({
        config: () => config,
        cache,
        reload: () => (isDraining ? Promise.resolve(STOPPING) : reloader.reload()),
        decisions: () => decisions.list(),
      }),
      ...(adminToken === undefined ? {} : { token: adminToken }),
    },
    log,
  })
  log.info({ url: proxy.url, admin: admin.url, routes: config.routes.length, version: VERSION }, 'listening')
  const close = async (): Promise<void> => {
    // The admin listener goes last: it says that the proxy is draining while it drains, and its last figures are read.
    try {
      await closers.close()
    } finally {
      await admin.close()
    }
  }
  return { url: proxy.url, adminUrl: admin.url, reload: () => reloader.reload(), close }
}

/** The bearer of `admin.tokenFile`, read again when the file changes; undefined where there is no such file configured. */
function openAdminToken(path: string | undefined, closers: Closers, log: Log): (() => Secret | undefined) | undefined {
  if (path === undefined) return undefined
  const file = closers.keep(
    openWatchedFile(path, {
      maxBytes: MAX_TOKEN_FILE_BYTES,
      onProblem: (reason) => log.warn({ file: path, reason }, 'admin.tokenFile cannot be read'),
    }),
  )
  return () => {
    const text = file.read()?.toString('utf8').trim()
    return text === undefined || text === '' ? undefined : new Secret(text)
  }
}
