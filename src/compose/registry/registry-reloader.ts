import { causeOf, type Clock, type Log, type Metrics } from '../../core/index.ts'
import { openWatchedFile } from '../../files/index.ts'
import { ConfigError } from '../config-error.ts'
import { createFileRetry } from '../file-retry.ts'
import { loadRegistry, type LoadedRegistry } from './load-registry.ts'

const MAX_CONFIG_BYTES = 10 * 1024 * 1024

export interface RegistryReloader {
  /** Reads the file again, atomically (decisions §6). Reloads run one at a time, in order; never rejects. */
  reload(): Promise<void>
  /** Waits for a reload in progress. */
  close(): Promise<void>
}

export interface RegistryReloaderOptions {
  readonly path: string
  /** Activates a configuration; rejects before anything has changed. */
  readonly install: (loaded: LoadedRegistry) => Promise<void>
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
}

/** Reloads when the registry file changes, and on request. */
export function createRegistryReloader({
  path,
  install,
  clock,
  log,
  metrics,
}: RegistryReloaderOptions): RegistryReloader {
  const reloads = metrics.counter('extauth_config_reloads_total', 'Reloads of the configuration.', ['outcome'])
  let isClosed = false

  const again = createFileRetry(undefined, () => void enqueue(true))

  const attempt = async (isRetry: boolean): Promise<void> => {
    if (isClosed) return
    try {
      const loaded = await loadRegistry(path, clock)
      for (const warning of loaded.warnings) log.warn({}, warning)
      await install(loaded)
      reloads.with('ok').add()
      again.succeeded()
      log.info({ registries: loaded.config.registries.length }, 'configuration reloaded')
    } catch (error) {
      const problems = error instanceof ConfigError ? error.lines : []
      const isNews = again.failed(error, problems)
      if (isRetry && !isNews) return
      reloads.with('failed').add()
      log.error({ problems, cause: causeOf(error) }, 'new configuration rejected; the previous one stays active')
    }
  }

  let queue = Promise.resolve()
  const enqueue = (isRetry: boolean): Promise<void> => (queue = queue.then(() => attempt(isRetry)))
  const reload = (): Promise<void> => enqueue(false)
  const watch = openWatchedFile(path, { maxBytes: MAX_CONFIG_BYTES, onChange: () => void reload() })
  return {
    reload,
    close: () => {
      isClosed = true
      again.close()
      watch.close()
      return queue
    },
  }
}
