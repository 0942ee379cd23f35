import { asFailure, causeOf, type Clock, type Log, type Metrics } from '../../core/index.ts'
import { openWatchedFile, watchDirectory } from '../../files/index.ts'
import { isConfigurationFile, type Problem, renderProblem, type ResolvedProxy } from '../../load/index.ts'
import type { ReloadResult } from '../admin.ts'
import { unusableSecrets } from '../check-files.ts'
import { ConfigError } from '../config-error.ts'
import { createFileRetry } from '../file-retry.ts'
import { type ProxySources, watchedPaths } from '../load-config.ts'
import { readProxyConfig } from './read-config.ts'

const MAX_CONFIG_BYTES = 10 * 1024 * 1024

export interface Reloader {
  /** Reads everything again: whole new or whole old (decisions §6). One at a time, in the order asked for. */
  reload(): Promise<ReloadResult>
  close(): void
}

export interface ReloaderOptions {
  readonly sources: ProxySources
  readonly current: () => ResolvedProxy
  /** Called before `install`. */
  readonly prepare?: ((next: ResolvedProxy) => Promise<void>) | undefined
  /** Puts a configuration in force; rejects before anything has changed. */
  readonly install: (next: ResolvedProxy) => Promise<void>
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
  /** Milliseconds between looks at files that refused a reload. Default 5 s. */
  readonly retryMs?: number | undefined
}

/** Settings that belong to the process: a reload that changes them runs on with the old ones and says so. */
const FIXED = ['namespace', 'listen', 'admin', 'secretsDirectory', 'sessionKeySecretRef', 'maxCredentials'] as const

export type FixedSettings = Pick<ResolvedProxy, (typeof FIXED)[number]>

/** What of a configuration stays in force until the process ends. */
export const fixedSettings = (config: ResolvedProxy): FixedSettings =>
  Object.fromEntries(FIXED.map((name) => [name, config[name]])) as FixedSettings

/**
 * Reloads when one of the files or directories of `sources` changes, when asked to, and when a file or secret that only a
 * refused configuration names may be there by now.
 */
export function createReloader(options: ReloaderOptions): Reloader {
  const { sources, current, prepare, install, clock, log, metrics, retryMs } = options
  const reloads = metrics.counter('extauth_config_reloads_total', 'Reloads of the configuration.', ['outcome'])

  const again = createFileRetry(retryMs, () => void enqueue(true))

  const attempt = async (isRetry: boolean): Promise<ReloadResult> => {
    try {
      const before = current()
      const next = await readProxyConfig(sources)
      // What may be served depends on the bind, and the bind stays: routes that only a new, loopback address would allow
      // must not come into force on the old one.
      if (next.listen.address !== before.listen.address)
        await readProxyConfig({ ...sources, listen: before.listen.address })
      const fixed = FIXED.filter((name) => JSON.stringify(next[name]) !== JSON.stringify(before[name]))
      const config = { ...next, ...fixedSettings(before) }
      const lost = await lostSecrets(before, config, clock)
      if (lost.length > 0) throw new ConfigError(lost.map(renderProblem), { problems: lost, isAboutFiles: true })
      await prepare?.(config)
      await install(config)
      if (fixed.length > 0) log.warn({ settings: fixed }, 'these settings need a restart; the old ones stay in force')
      reloads.with('ok').add()
      log.info({ routes: next.routes.length }, 'configuration reloaded')
      again.succeeded()
      return { ok: true }
    } catch (error) {
      const problems = problemsOf(error)
      const isNews = again.failed(error, problems)
      if (isRetry && !isNews) return { ok: false, problems }
      reloads.with('failed').add()
      log.error({ problems, cause: causeOf(error) }, 'the new configuration cannot be used; the old one stays in force')
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
    // A directory is read flat: secrets below it rotate without a reload.
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
 * What a reload would take away from routes that serve now: secrets that only `next` names and that are not there, or cannot
 * be used. Routes that are new, or that lack a secret already, have nothing to lose: they wait for theirs (decisions §6). In a
 * pod this is the rule: what it mounts was settled when it was made, and its successors have the new ones (ADR 0378).
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
