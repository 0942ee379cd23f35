import path from 'node:path'
import { asFailure, type Clock, type Log } from '../../core/index.ts'
import { createLocalHandlers } from '../../proxy/index.ts'
import { type Problem, problemOfFile, type ResolvedProxy } from '../../load/index.ts'
import { createStores, type Stores } from '../../storage/index.ts'
import { buildCandidate, createServices, loadModules } from '../../compose/proxy/index.ts'
import { ConfigError, placed } from '../../compose/index.ts'
import { openMetrics } from '../../report/index.ts'

export interface DryRunOptions {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly stsEndpoint: string | undefined
  /** False builds without files and secrets, as if none were configured. */
  readonly readsFiles: boolean
  readonly clock: Clock
}

const SILENT: Log = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }

/**
 * Builds a proxy with this configuration by the code of `proxy`, then releases it. Opens no listener, fetches nothing,
 * connects to no store. Returns the problems that prevent a start, including those of environment variables.
 */
export async function dryRun(config: ResolvedProxy, options: DryRunOptions): Promise<readonly Problem[]> {
  const { clock, env, stsEndpoint, readsFiles } = options
  const stores = memoryOnly(clock)
  const { secretsDirectory, maxCredentials } = config
  try {
    const services = createServices({
      // A path that does not exist has no secrets.
      secretsDirectory: readsFiles ? secretsDirectory : path.join(secretsDirectory, '\u0001'),
      maxCredentials,
      stsEndpoint,
      env,
      log: SILENT,
      clock,
      stores,
      opensAuditFile: false,
    })
    const modules = await loadModules(config)
    const candidate = await buildCandidate(readsFiles ? config : withoutFiles(config), urlOf(config), services, modules)
    try {
      placed(config.places, { process: 'routes' }, () => createLocalHandlers(candidate.runtime.localHandlers))
    } finally {
      await candidate.runtime.close()
    }
    return []
  } catch (error) {
    if (error instanceof ConfigError) return error.problems
    const failure = asFailure(error)
    if (failure.code === 'internal_error') throw error
    // Problems outside of documents come from the environment.
    return [problemOfFile('(environment)', failure.detail ?? failure.code)]
  } finally {
    await stores.close()
  }
}

function withoutFiles(config: ResolvedProxy): ResolvedProxy {
  const routes = config.routes.map((route) => Object.assign({}, route, { targetTls: undefined }))
  return { ...config, routes }
}

/** URL of the listener; a free port is unknown before the start. */
function urlOf({ listen: { address, tls } }: ResolvedProxy): string {
  if (address.startsWith('unix:')) return address
  const [, host = '', port = ''] = /^(.*):(\d+)$/.exec(address) ?? []
  return `${tls === undefined ? 'http' : 'https'}://${host === '' || host === '*' ? 'localhost' : host}:${port}`
}

/** Stores as configured, without connections. */
function memoryOnly(clock: Clock): Stores {
  const stores = createStores({ clock, log: SILENT, metrics: openMetrics(), random: Math.random })
  return {
    open: (_config, scope) => stores.open({ type: 'memory' }, scope),
    refusals: () => Promise.resolve([]),
    states: () => [],
    close: () => stores.close(),
  }
}
