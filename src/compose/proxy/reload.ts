import { asFailure, type AuditSink, causeOf, type Clock, type Log, type Metrics } from '../../core/index.ts'
import { openWatchedFile, watchDirectory } from '../../files/index.ts'
import { isConfigurationFile, type Problem, renderProblem, type ResolvedProxy } from '../../load/index.ts'
import type { ReloadResult } from '../admin.ts'
import { unusableSecrets } from '../check-files.ts'
import { ConfigError } from '../config-error.ts'
import { createFileRetry } from '../file-retry.ts'
import { type ProxySources, watchedPaths } from '../load-config.ts'
import { readProxyConfig } from './read-config.ts'

const MAX_CONFIG_BYTES = 10 * 1024 * 1024

/** Problems in an event of the audit trail. */
const MAX_PROBLEMS = 10
const RELOADED = { type: 'config_reloaded', component: 'proxy' } as const

export interface Reloader {
  /** Reads everything again, atomically (decisions §6). Reloads run one at a time, in order. */
  reload(): Promise<ReloadResult>
  close(): void
}

export interface ReloaderOptions {
  readonly sources: ProxySources
  readonly current: () => ResolvedProxy
  /** Called before `install`. */
  readonly prepare?: ((next: ResolvedProxy) => Promise<void>) | undefined
  /** Activates a configuration; rejects before anything has changed. */
  readonly install: (next: ResolvedProxy) => Promise<void>
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
  readonly audit: AuditSink
  /** Milliseconds between retries after a file made a reload fail. Default 5 s. */
  readonly retryMs?: number | undefined
}

/** Settings of the process: a reload that changes them keeps the old values and logs a warning. */
const FIXED = ['namespace', 'listen', 'admin', 'secretsDirectory', 'sessionKeySecretRef', 'maxCredentials'] as const

export type FixedSettings = Pick<ResolvedProxy, (typeof FIXED)[number]>

/** The settings that stay fixed until the process ends. */
export const fixedSettings = (config: ResolvedProxy): FixedSettings =>
  Object.fromEntries(FIXED.map((name) => [name, config[name]])) as FixedSettings

/**
 * Reloads on a change of the files or directories of `sources`, on request, and periodically after a reload
 * failed because of a referenced file or secret.
 */
export function createReloader(options: ReloaderOptions): Reloader {
  const { sources, current, prepare, install, clock, log, metrics, audit, retryMs } = options
  const reloads = metrics.counter('extauth_config_reloads_total', 'Reloads of the configuration.', ['outcome'])

  const again = createFileRetry(retryMs, () => void enqueue(true))

  const attempt = async (isRetry: boolean): Promise<ReloadResult> => {
    try {
      const before = current()
      const next = await readProxyConfig(sources)
      // The rules for routes depend on the bind address, which is fixed: routes that only a new loopback address would
      // allow must not become active on the old one.
      if (next.listen.address !== before.listen.address)
        await readProxyConfig({ ...sources, listen: before.listen.address })
      const fixed = FIXED.filter((name) => JSON.stringify(next[name]) !== JSON.stringify(before[name]))
      const config = { ...next, ...fixedSettings(before) }
      const lost = await lostSecrets(before, config, clock)
      if (lost.length > 0) throw new ConfigError(lost.map(renderProblem), { problems: lost, isAboutFiles: true })
      await prepare?.(config)
      await install(config)
      if (fixed.length > 0) log.warn({ settings: fixed }, 'settings need a restart; the previous values stay active')
      reloads.with('ok').add()
      log.info({ routes: next.routes.length }, 'configuration reloaded')
      audit.notice({ ...RELOADED, outcome: 'success', details: { routes: next.routes.length } })
      again.succeeded()
      return { ok: true }
    } catch (error) {
      const problems = problemsOf(error)
      const isNews = again.failed(error, problems)
      if (isRetry && !isNews) return { ok: false, problems }
      reloads.with('failed').add()
      log.error({ problems, cause: causeOf(error) }, 'new configuration rejected; the previous one stays active')
      audit.notice({ ...RELOADED, outcome: 'failure', details: { problems: problems.slice(0, MAX_PROBLEMS) } })
      return { ok: false, problems }
    }
  }

  let queue: Promise<unknown> = Promise.resolve()
  const enqueue = (isRetry: boolean): Promise<ReloadResult> => {
    const result = queue.then(() => attempt(isRetry))
    queue = result
    return result
  }
  const reload = (): Promise<ReloadResult> => enqueue(false)
  const onChange = (): void => void reload()
  const watches = watchedPaths(sources).map(({ path, isDirectory }) =>
    // Directories are watched without their subdirectories: secrets below rotate without a reload.
    isDirectory
      ? watchDirectory(path, { onChange, onlyFiles: isConfigurationFile })
      : openWatchedFile(path, { maxBytes: MAX_CONFIG_BYTES, onChange }),
  )
  return {
    reload,
    close: () => {
      again.close()
      for (const watch of watches) watch.close()
    },
  }
}

function problemsOf(error: unknown): readonly string[] {
  if (error instanceof ConfigError) return error.lines
  const failure = asFailure(error)
  return [failure.detail ?? failure.code]
}

/**
 * The secrets that a reload would take from routes that serve now: only `next` references them, and they are missing or
 * unusable. New routes, and routes that already lack a secret, wait for theirs (decisions §6). This is the rule in pods:
 * their mounts are fixed at creation, and new pods mount the new secrets (ADR 0378).
 */
async function lostSecrets(before: ResolvedProxy, next: ResolvedProxy, clock: Clock): Promise<Problem[]> {
  const named = new Set(before.places.secrets.map(({ label }) => label))
  const added = next.places.secrets.filter(({ label }) => !named.has(label))
  if (added.length === 0) return []
  const lacking = await unusableSecrets(added, before.secretsDirectory, clock)
  if (lacking.length === 0) return []
  const idle = new Set(
    (await unusableSecrets(before.places.secrets, before.secretsDirectory, clock)).flatMap(({ routes = [] }) => routes),
  )
  const serving = new Set(before.routes.map(({ name }) => name).filter((name) => !idle.has(name)))
  return lacking.filter(({ routes = [] }) => routes.some((name) => serving.has(name)))
}
