import { type Clock, SYSTEM_CLOCK } from '../../core/index.ts'
import { createOutbound } from '../../net/index.ts'
import { type Readiness, startOps } from '../../ops/index.ts'
import { startRegistry } from '../../registry/index.ts'
import { describeEgress, egressFrom } from '../egress.ts'
import { countLostLines, type ReportingLog, openMetrics } from '../../report/index.ts'
import { loadRegistry, type LoadedRegistry } from './load-registry.ts'
import { createMaterials, openNamedFiles } from '../materials.ts'
import { createNamedSeries, withSeries } from '../named-series.ts'
import { expiringOf, noteEnds } from '../proxy/readiness.ts'
import { openSecrets } from '../../secrets/index.ts'
import { closeContent, type OpenContent, openContent } from './registry-content.ts'
import { createRegistryReloader } from './registry-reloader.ts'
import { VERSION } from '../version.ts'

export interface RunRegistryOptions {
  /** Path of the registry file (decisions §7). */
  readonly configPath: string
  /** Default `:8080`. */
  readonly address?: string | undefined
  /** Default `:8081`. */
  readonly internalAddress?: string | undefined
  /** Grace period for in-flight responses after a stop, in milliseconds. Default 10 s. */
  readonly drainGraceMs?: number | undefined
  /** Log lines of rejected requests contain the client address. Default true. */
  readonly logsClients?: boolean | undefined
  readonly env: Readonly<Record<string, string | undefined>>
  readonly log: ReportingLog
  readonly clock?: Clock
}

export interface RunningRegistry {
  /** `http://127.0.0.1:8080`, or `unix:/path`. */
  readonly url: string
  readonly internalUrl: string
  /** Reads the registry file and all data again, without waiting for an event or the next poll; never rejects. */
  reload(): Promise<void>
  /** Drains and closes everything. */
  close(): Promise<void>
}

const DEFAULT_ADDRESS = ':8080'
const DEFAULT_INTERNAL_ADDRESS = ':8081'

/**
 * Runs the registry server: its API on one listener; health, readiness, version and metrics on another. Throws
 * `ConfigError` with all problems of the file, and `Failure` config_error if an address can't be bound; nothing is left
 * open then.
 */
export async function runRegistryServer(options: RunRegistryOptions): Promise<RunningRegistry> {
  await using opening = new AsyncDisposableStack()
  const { log, env, clock = SYSTEM_CLOCK } = options
  const loaded = await loadRegistry(options.configPath, clock)
  for (const warning of loaded.warnings) log.warn({}, warning)

  const metrics = openMetrics()
  countLostLines(log, metrics)
  const egressProxy = egressFrom(env)
  if (egressProxy !== undefined) log.info(describeEgress(egressProxy), 'using an egress proxy')
  const series = createNamedSeries(metrics)
  const egress = egressProxy === undefined ? {} : { egressProxy }
  const outbound = (wanted: Omit<Parameters<typeof createOutbound>[0], 'clock'>) =>
    withSeries(series, wanted.name, createOutbound({ ...wanted, clock, metrics, ...egress }))

  const namedFiles = openNamedFiles(log, env)
  const materialsIn = (directory: string) =>
    createMaterials(openSecrets(directory, { log, metrics, clock }), namedFiles)
  const deps = { clock, log, metrics, outbound, series, materialsIn }
  let content = await openContent(loaded, deps)
  opening.defer(() => closeContent(content))
  const server = await startRegistry({
    ...content,
    address: options.address ?? DEFAULT_ADDRESS,
    version: VERSION,
    log,
    logsClients: options.logsClients,
    metrics,
  })
  const install = async (changed: LoadedRegistry): Promise<void> => {
    const before = content
    const next = await openContent(changed, deps, before)
    server.replace(next)
    content = next
    await closeContent(before, next)
    for (const name of before.registries.keys())
      if (!next.registries.has(name)) metrics.removeSeries({ registry: name })
  }
  const internalAddress = options.internalAddress ?? DEFAULT_INTERNAL_ADDRESS
  opening.defer(() => server.drain(options.drainGraceMs))
  const ops = await startOps({
    address: internalAddress,
    version: VERSION,
    readiness: () => withProviders(server.readiness(), content, clock),
    metrics: () => {
      noteEnds(content.ending(), metrics)
      return metrics.render()
    },
    log,
  })
  const reloader = createRegistryReloader({ path: options.configPath, install, clock, log, metrics })
  const { url } = server
  const opened = opening.move()
  log.info(
    { url, internal: ops.url, mode: content.auth.mode, registries: content.registries.size, version: VERSION },
    'listening',
  )
  return {
    url,
    internalUrl: ops.url,
    reload: async () => {
      await reloader.reload()
      await Promise.all([...content.registries.values()].map((source) => source.refresh()))
    },
    close: async () => {
      // The internal server closes last: it reports the drain.
      try {
        await reloader.close()
        await opened.disposeAsync()
      } finally {
        await ops.close()
      }
    },
  }
}

/**
 * Adds identity providers without keys and client credentials due for renewal. A restart would not help, so neither
 * makes the server unready.
 */
function withProviders(readiness: Readiness, content: OpenContent, clock: Clock): Readiness {
  const providersWithoutKeys = content.providersWithoutKeys()
  const expiring = expiringOf(content.ending(), clock)
  if (providersWithoutKeys.length + expiring.length === 0) return readiness
  const detail = {
    ...(readiness.detail as object),
    ...(providersWithoutKeys.length === 0 ? {} : { providersWithoutKeys }),
    ...(expiring.length === 0 ? {} : { expiring }),
  }
  return { ...readiness, degraded: true, detail }
}
