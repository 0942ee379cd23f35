import type { Clock, Log, Secret } from '../../core/index.ts'
import type { ResolvedProxy } from '../../load/index.ts'
import { createServices } from '../../compose/proxy/index.ts'
import { createClockNotes } from './clock.ts'
import { createStoreNotes } from './stores.ts'
import { createOnce, type CheckContext } from './context.ts'
import { about, type CheckResult, type Task } from './result.ts'
import { authServerSections, connectionSections, processSection, routeSection, type Section } from './sections.ts'

export interface CheckOptions {
  readonly config: ResolvedProxy
  /** Tests only this route; all if undefined. */
  readonly route: string | undefined
  readonly token: Secret | undefined
  readonly refreshToken: CheckContext['refreshToken']
  readonly stsEndpoint: string | undefined
  readonly env: Readonly<Record<string, string | undefined>>
  readonly clock: Clock
}

/** A section with its lines. */
export interface CheckedSection {
  readonly title: string
  readonly route: string | undefined
  readonly checks: readonly CheckResult[]
}

/** Concurrent tasks: a configuration may have a thousand routes. */
const MOST_AT_ONCE = 16

/**
 * Runs all tests concurrently, within limits. Calls `onSection` in the order of the configuration, as soon as a
 * section and all before it are complete.
 */
export async function runChecks(
  options: CheckOptions,
  onSection: (section: CheckedSection) => void,
): Promise<readonly CheckedSection[]> {
  const { config, clock } = options
  const services = createServices({
    secretsDirectory: config.secretsDirectory,
    maxCredentials: config.maxCredentials,
    stsEndpoint: options.stsEndpoint,
    env: options.env,
    log: SILENT,
    clock,
  })
  const holdings = services.hold()
  const times = createClockNotes()
  const context: CheckContext = {
    config,
    clock,
    secrets: holdings.materials.secrets,
    obtain: holdings.obtain,
    authenticators: holdings.authenticators,
    egressProxy: services.egressProxy,
    token: options.token,
    refreshToken: options.refreshToken,
    isOneRoute: options.route !== undefined || config.routes.length === 1,
    times,
    stores: createStoreNotes(times),
    once: createOnce(),
  }
  try {
    const listenUrl = config.listen.address.startsWith('unix:') ? 'http://localhost' : urlOf(config)
    // URL of a proxy with this configuration on this machine.
    const reachable = /^unix:|:0$/.test(config.listen.address) ? undefined : listenUrl
    const routes = config.routes.filter(({ name }) => options.route === undefined || name === options.route)
    const used = new Set(routes.map(({ authServer }) => authServer?.server.name))
    const servers = authServerSections(
      { ...context, config: { ...config, authServers: config.authServers.filter(({ name }) => used.has(name)) } },
      services,
      listenUrl,
    )
    const sections: Section[] = [
      processSection(context, services),
      ...servers,
      ...connectionSections(context, services, listenUrl, options.route),
      ...routes.map((route) =>
        routeSection(
          route,
          reachable,
          { ...context, obtain: { ...context.obtain, onMatcherError: route.onMatcherError } },
          services,
        ),
      ),
    ]
    const limit = createLimit(MOST_AT_ONCE)
    const running = sections
      .filter(({ tasks }) => tasks.length > 0)
      .map(({ title, route, tasks }) => ({ title, route, results: Promise.all(tasks.map((task) => limit(task))) }))
    const checked: CheckedSection[] = []
    const add = (section: CheckedSection): void => {
      checked.push(section)
      onSection(section)
    }
    for (const { title, route, results } of running) add({ title, route, checks: (await results).flat() })
    const stores = context.stores.lines()
    if (stores.length > 0) add({ title: 'stores', route: undefined, checks: stores })
    add({ title: 'time', route: undefined, checks: context.times.lines() })
    return checked
  } finally {
    await holdings.release()
    await services.stores.close()
  }
}

const urlOf = ({ listen }: ResolvedProxy): string => {
  const address = listen.address.startsWith(':') ? `localhost${listen.address}` : listen.address
  return `${listen.tls === undefined ? 'http' : 'https'}://${address}`
}

const nothing = (): void => undefined
/** The lines of the tests contain all information. */
const SILENT: Log = { debug: nothing, info: nothing, warn: nothing, error: nothing }

/** Runs at most `most` tasks concurrently. An unexpected error becomes a line. */
function createLimit(most: number): (task: Task) => Promise<readonly CheckResult[]> {
  let running = 0
  const waiting: (() => void)[] = []
  return async (task) => {
    if (running >= most) await new Promise<void>((resolve) => waiting.push(resolve))
    running += 1
    try {
      return await task()
    } catch (error) {
      return [about('file', 'check').thrown(error)]
    } finally {
      running -= 1
      waiting.shift()?.()
    }
  }
}
