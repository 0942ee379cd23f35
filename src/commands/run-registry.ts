import { createAuthenticator, isPublicPath, protectedResourceMetadata } from '../authenticate/index.ts'
import type { Clock } from '../core/index.ts'
import { metadataPath, metadataUrl } from '../http/index.ts'
import { createOutbound } from '../net/index.ts'
import { startOps } from '../ops/index.ts'
import { type AccessPolicy, openSource, type Source, startRegistry } from '../registry/index.ts'
import { type AuthSection, loadRegistryFile, renderProblem } from '../resources/index.ts'
import { type Closers, whole } from './closers.ts'
import { ConfigError } from './config-error.ts'
import { describeEgress, egressFrom } from './egress.ts'
import { countLostLines, type ReportingLog } from './logging.ts'
import { openMetrics } from './metrics.ts'
import { VERSION } from './version.ts'

export interface RunRegistryOptions {
  /** The registry file (decisions §7). */
  readonly configPath: string
  /** Default `:8080`. */
  readonly address?: string | undefined
  /** Default `:8081`. */
  readonly internalAddress?: string | undefined
  /** How long answers under way may take after a stop, in milliseconds. Default 10 s. */
  readonly drainGraceMs?: number | undefined
  readonly env: Readonly<Record<string, string | undefined>>
  readonly log: ReportingLog
  readonly clock?: Clock
}

export interface RunningRegistry {
  /** `http://127.0.0.1:8080`, or `unix:/path`. */
  readonly url: string
  readonly internalUrl: string
  /** Looks at all data again, without waiting for an event or the next poll; never rejects. */
  refresh(): Promise<void>
  /** Drains and lets go of everything. */
  close(): Promise<void>
}

const DEFAULT_ADDRESS = ':8080'
const DEFAULT_INTERNAL_ADDRESS = ':8081'
const WELL_KNOWN = '/.well-known/oauth-protected-resource'

/**
 * Runs the registry server: its API on one listener, health, readiness, version and metrics on another. Throws
 * `ConfigError` with all problems of the file, and `Failure` config_error when an address can't be bound; nothing is left
 * open then.
 */
export function runRegistryServer(options: RunRegistryOptions): Promise<RunningRegistry> {
  return whole((closers) => start(options, closers))
}

async function start(options: RunRegistryOptions, closers: Closers): Promise<RunningRegistry> {
  const { log, env, clock = { now: () => Date.now() } } = options
  const loaded = await loadRegistryFile(options.configPath)
  if (loaded.problems !== undefined) throw new ConfigError(loaded.problems.map(renderProblem))
  const { auth, registries: configured } = loaded.config
  for (const warning of loaded.warnings) log.warn({}, warning)

  const metrics = openMetrics()
  countLostLines(log, metrics)
  const egressProxy = egressFrom(env)
  if (egressProxy !== undefined) log.info(describeEgress(egressProxy), 'connections go out through an egress proxy')
  const outbound = (wanted: Omit<Parameters<typeof createOutbound>[0], 'clock'>) =>
    createOutbound({ ...wanted, clock, metrics, ...(egressProxy === undefined ? {} : { egressProxy }) })

  const authenticator = closers.keep(createAuthenticator(auth, { clock, log, metrics, outbound }))
  // Keys are fetched ahead of the first caller; what fails is logged there and tried again.
  void authenticator.start()

  const registries = new Map<string, Source>()
  for (const { name, source } of configured)
    registries.set(name, closers.keep(await openSource(name, source, { clock, log, metrics, outbound })))

  const server = await startRegistry({
    address: options.address ?? DEFAULT_ADDRESS,
    registries,
    access: accessOf(auth, authenticator),
    documentsFor: (url) => documentsOf(auth, url),
    version: VERSION,
    log,
    metrics,
  })
  const internalAddress = options.internalAddress ?? DEFAULT_INTERNAL_ADDRESS
  closers.keep({ close: () => server.drain(options.drainGraceMs) })
  const ops = await startOps({
    address: internalAddress,
    version: VERSION,
    readiness: () => server.readiness(),
    metrics: () => metrics.render(),
    log,
  })
  const fields = { url: server.url, internal: ops.url, mode: auth.mode, registries: registries.size, version: VERSION }
  log.info(fields, 'listening')
  return {
    url: server.url,
    internalUrl: ops.url,
    refresh: async () => void (await Promise.all([...registries.values()].map((source) => source.refresh()))),
    close: async () => {
      // The internal server goes last: it says that the registry is draining while it drains.
      try {
        await closers.close()
      } finally {
        await ops.close()
      }
    },
  }
}

function accessOf(auth: AuthSection, tokens: ReturnType<typeof createAuthenticator>): AccessPolicy {
  if (auth.mode === 'anonymous') return { mode: 'anonymous' }
  const { resourceUrl, realm, publicPaths } = auth.oauth
  return {
    mode: 'oauth',
    tokens,
    realm,
    resourceMetadata: metadataUrl(resourceUrl),
    isPublicPath: (path) => isPublicPath(publicPaths, path),
  }
}

/**
 * The RFC 9728 document, at the root and where RFC 9728 §3.1 puts it for the resource's path. In mode `anonymous` the
 * resource is the server itself (decisions §2.7).
 */
function documentsOf(auth: AuthSection, url: string): ReadonlyMap<string, object> {
  const resourceUrl = auth.mode === 'oauth' ? auth.oauth.resourceUrl : url
  const documented = auth.mode === 'oauth' ? auth.oauth.resourceDocumentation : undefined
  const document = protectedResourceMetadata({
    resourceUrl,
    auth,
    resourceDocumentation: documented ?? `${resourceUrl.replace(/\/$/, '')}/openapi.json`,
  })
  const path = URL.canParse(resourceUrl) ? (metadataPath(resourceUrl).split('?')[0] ?? WELL_KNOWN) : WELL_KNOWN
  return new Map([
    [WELL_KNOWN, document],
    [path, document],
  ])
}
