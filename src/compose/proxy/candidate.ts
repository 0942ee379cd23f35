import { setImmediate } from 'node:timers/promises'
import { causeOf, type Route } from '../../core/index.ts'
import { checkHttpClientInUse } from '../../net/index.ts'
import type { Runtime } from '../../proxy/index.ts'
import type { ResolvedProxy } from '../../load/index.ts'
import { createBackends } from './backends.ts'
import { placed } from '../config-error.ts'
import type { LazyModules } from './lazy-modules.ts'
import type { Services } from './proxy-services.ts'
import type { Resources } from './readiness.ts'
import { resourceDocuments } from '../resource-documents.ts'
import { buildRoute, type Keep } from './routes.ts'
import { prepareSharedCache } from './shared-cache.ts'
import { createSharedParts } from './shared-parts.ts'

/** A configuration that can be put in force: everything is built and opened, nothing was fetched for it. */
export interface Candidate {
  readonly config: ResolvedProxy
  /** Closing it lets go of all that no other configuration uses. */
  readonly runtime: Runtime
  /** The secrets and files that this configuration names. */
  readonly held: Resources
  /** Resolves when it can serve as well as it will; at the latest after two seconds, as a store may be down. */
  prepared(): Promise<void>
  /** It is in force: what fetches ahead of the first request begins. */
  adopt(): void
  /** It will never be: what only this had opened is let go of. */
  refuse(): void
}

const PREPARE_MS = 2_000

/** So many routes are built in some milliseconds. */
export const ROUTES_PER_TURN = 100

/**
 * Builds what a configuration needs, with the `modules` that were loaded for it; between `ROUTES_PER_TURN` routes it gives way to
 * requests, by `turn`. Rejects with a `ConfigError` with the place of what cannot run, and then nothing of it stays open.
 */
export async function buildCandidate(
  config: ResolvedProxy,
  listenUrl: string,
  services: Services,
  modules: LazyModules,
  turn: () => Promise<unknown> = setImmediate,
): Promise<Candidate> {
  const { clock, log, decisions, egressProxy, protocol } = services
  const secrets = services.secrets.hold()
  const files = services.namedFiles.hold()
  const authenticators = services.authenticators.hold()
  const identities = services.identities.hold()
  const certificate: Resources['certificate'] = (path) => files.certificate(path)
  const tokenFile: Resources['tokenFile'] = (path) => files.token(path)
  const obtain = { ...services.obtain, secrets, caCertificate: certificate, tokenFile, identities }
  const stack = new AsyncDisposableStack()
  stack.defer(async () => {
    secrets.release()
    files.release()
    await Promise.all([authenticators.release(), identities.release()])
  })
  const close = (): Promise<void> => stack.disposeAsync()
  const refuse = (): void => {
    close().catch((cause: unknown) => log.error({ cause: causeOf(cause) }, 'a refused configuration did not close'))
  }
  try {
    const keep: Keep = (part) => stack.adopt(part, (one) => one.close())
    const { places } = config
    const authServers = services.authServers.hold(config, listenUrl, modules)
    stack.defer(() => authServers.release())
    const receivers = services.tracing.hold(config.routes, services.receivers, modules.telemetry)
    stack.defer(() => receivers.release())
    const backends = createBackends(keep, services.backendConnections)
    const shared = createSharedParts()
    const deps = { clock, authenticators, authServers, decisions, egressProxy, obtain, backends, shared, protocol }
    const routes: Route[] = []
    for (const resolved of config.routes) {
      routes.push(placed(places, { route: resolved.name }, () => buildRoute(resolved, listenUrl, deps, keep)))
      if (routes.length % ROUTES_PER_TURN === 0) await turn()
    }
    const localHandlers = [
      ...resourceDocuments(config, listenUrl),
      ...authServers.all.flatMap(({ handlers }) => handlers),
    ]
    const sharedCache = keep(
      placed(places, { process: 'cache' }, () =>
        prepareSharedCache(config, { ...services, slot: services.sharing, secrets }),
      ),
    )
    const runtime = { routes, localHandlers, close }
    const providersWithoutKeys = (): readonly string[] => authenticators.withoutKeys()
    const storeRemarks = () => {
      const { problem } = sharedCache
      const alone = problem === undefined ? [] : [`credentials are not shared with other replicas: ${problem}`]
      return [...services.stores.states().flatMap(({ remarks }) => remarks), ...alone]
    }
    const held = {
      clock,
      secrets,
      certificate,
      tokenFile,
      providersWithoutKeys,
      storeRemarks,
      authServers: authServers.all,
    }
    const prepared = async (): Promise<void> => {
      await checkHttpClientInUse()
      await atMost(PREPARE_MS, Promise.all(authServers.all.map((server) => server.opened())))
    }
    const adopt = (): void => {
      authenticators.start()
      sharedCache.adopt()
      receivers.adopt()
    }
    return { config, runtime, held, prepared, adopt, refuse }
  } catch (error) {
    refuse()
    throw error
  }
}

async function atMost(ms: number, work: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, ms)))
  await Promise.race([work, late])
  clearTimeout(timer)
}
