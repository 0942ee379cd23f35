import { setImmediate } from 'node:timers/promises'
import { createApply } from '../../apply/index.ts'
import { createRouteAuthenticate } from '../../authenticate/index.ts'
import { createAuthorizer, type ProtocolMemory } from '../../authorize/index.ts'
import { causeOf, type Clock, type Route } from '../../core/index.ts'
import { createForward } from '../../forward/index.ts'
import type { ResolvedProxy } from '../../load/index.ts'
import {
  type Backend,
  type BackendOptions,
  checkHttpClientInUse,
  type ConnectionBudget,
  createBackend,
  type EgressProxy,
} from '../../net/index.ts'
import type { DecisionLog } from '../../obtain/cloud-sts/index.ts'
import { createObtain, createSelectedObtain, type ObtainDeps, readsRequest } from '../../obtain/index.ts'
import type { Runtime } from '../../proxy/index.ts'
import {
  authsOf,
  credentialOf,
  forwardedNames,
  headersSetBy,
  type ResolvedRoute,
  TYPE_RECORDS,
} from '../../resources/index.ts'
import { placed } from '../config-error.ts'
import { resourceDocuments, resourceUrlOf } from '../resource-documents.ts'
import type { HeldAuthenticators, HeldAuthServers, LazyModules } from './pools.ts'
import type { Resources } from './readiness.ts'
import type { Services } from './services.ts'
import { prepareSharedCache } from './shared-cache.ts'

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
  const holdings = services.hold()
  const stack = new AsyncDisposableStack()
  stack.defer(() => holdings.release())
  const close = (): Promise<void> => stack.disposeAsync()
  const refuse = (): void => {
    close().catch((cause: unknown) => log.error({ cause: causeOf(cause) }, 'a refused configuration did not close'))
  }
  try {
    const keep: Keep = (part) => stack.adopt(part, (one) => one.close())
    const { places } = config
    const { materials, authenticators, obtain } = holdings
    const { secrets, certificate, tokenFile } = materials
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

/** What all routes of a configuration have in common. */
interface RouteDeps {
  readonly clock: Clock
  readonly authenticators: Pick<HeldAuthenticators, 'get'>
  readonly authServers: Pick<HeldAuthServers, 'of' | 'issuerOf'>
  readonly decisions: DecisionLog
  readonly obtain: ObtainDeps
  readonly backends: Backends
  readonly egressProxy: EgressProxy | undefined
  readonly shared: SharedParts
  readonly protocol: ProtocolMemory
}

/** Remembers something that has to be closed, and gives it back. */
type Keep = <T extends { close(): Promise<void> }>(part: T) => T

/**
 * Builds everything that runs per request of one route; nothing is fetched. `listenUrl` names the resource of a route
 * that has no `resourceUrl`. What it opens is handed to `keep`, whose matter it is to close it. Throws `Failure` for what cannot run.
 */
function buildRoute(resolved: ResolvedRoute, listenUrl: string, deps: RouteDeps, keep: Keep): Route {
  const { auth, target, timeouts, http2, targetTls, callers, headerForward } = resolved
  const { whenRejected } = TYPE_RECORDS[auth.type]
  const auths = authsOf(resolved)
  const signsBody = auths.some(({ type }) => TYPE_RECORDS[type].signsBody)
  const isProtected = callers.mode === 'oauth'
  const { egressProxy } = deps
  const backend = deps.backends.open({ origin: target.origin, timeouts, http2, targetTls, egressProxy })
  const forward = keep(createForward(resolved, { backend, clock: deps.clock }))
  const resourceUrl = resourceUrlOf(resolved, listenUrl)
  const authenticator = deps.authenticators.get(callers, deps.authServers.issuerOf(resolved))
  const { requiredScopes, allowBoundTokens } = resolved
  const publicPaths = callers.mode === 'oauth' ? callers.oauth.publicPaths : []
  const { shared, clock } = deps
  return {
    ...resolved,
    type: auth.type,
    ownedHeaders: [
      ...new Set(auths.flatMap((one) => headersSetBy(one).map(({ name }) => name))),
      ...forwardedNames(headerForward),
    ],
    whenRejected,
    resourceUrl: isProtected ? resourceUrl : undefined,
    isProtected,
    realm: callers.mode === 'oauth' ? (callers.oauth.realm ?? new URL(resourceUrl).host) : '',
    isRevoked: shared(authenticator, 'isRevoked', () => (caller) => authenticator.isRevoked(caller)),
    authenticate: shared(authenticator, ['authenticate', requiredScopes, allowBoundTokens, publicPaths], () =>
      createRouteAuthenticate(authenticator, { requiredScopes, allowBoundTokens, publicPaths }),
    ),
    authorize: authorizeOf(resolved, deps),
    obtain: obtainsOf(resolved, deps, keep),
    apply: shared(backend, ['apply', target.host, signsBody], () =>
      createApply({ host: target.host, needsBody: signsBody, clock }),
    ),
    forward,
  }
}

/** Absent where nothing needs what requests say: their bodies are not read then. */
function authorizeOf(resolved: ResolvedRoute, { obtain, decisions, protocol }: RouteDeps): Route['authorize'] {
  const { name, authorization, limits, target } = resolved
  const isRead = authorization !== undefined || resolved.credentials.length > 0 || authsOf(resolved).some(readsRequest)
  if (!isRead) return undefined
  const own = decisions.forRoute(name)
  return createAuthorizer({
    route: name,
    authorization,
    limitBytes: Math.min(limits.evaluatedBody, limits.bufferedBody),
    metrics: obtain.metrics,
    memory: protocol.of(name, `${target.origin}${target.path}`),
    onDecision: (known, { mcp }, decision) => own.authorized(known, mcp, decision),
  })
}

/** The credential of the route, or another one for some requests. */
function obtainsOf(resolved: ResolvedRoute, deps: RouteDeps, keep: Keep): Route['obtain'] {
  const own = obtainOf(resolved, deps, keep)
  if (resolved.credentials.length === 0) return own
  const entries = resolved.credentials.map(({ auth, ...request }) => {
    const { whenRejected } = TYPE_RECORDS[auth.type]
    const obtain = { ...obtainOf({ ...resolved, auth }, deps, keep), whenRejected: () => whenRejected }
    return Object.assign({ obtain }, request)
  })
  return createSelectedObtain(own, entries)
}

/** Whose credential is the same whoever calls has one source for all routes with this config; a source for callers is of its route. */
function obtainOf(resolved: ResolvedRoute, deps: RouteDeps, keep: Keep): Route['obtain'] {
  const { auth, headerForward, onMatcherError } = resolved
  if (credentialOf(auth) !== 'caller') {
    const { namespace, name, configHash } = auth
    return deps.shared(deps.backends, ['obtain', namespace, name, configHash, onMatcherError, headerForward], () =>
      keep(createObtain(auth, { ...deps.obtain, onMatcherError }, headerForward)),
    )
  }
  const decisions = deps.decisions.forRoute(resolved.name)
  const upstreamTokens = deps.authServers.of(resolved)?.upstreamTokens
  const own = upstreamTokens === undefined ? {} : { upstreamTokens }
  return decisions.recording(
    keep(createObtain(auth, { ...deps.obtain, ...own, decisions, onMatcherError }, headerForward)),
  )
}

/** The backends of one configuration. */
export interface Backends {
  /** The connections to a backend; routes that mean the same one share them. */
  readonly open: (options: BackendOptions) => Backend
}

/**
 * One pool of connections for each origin, TLS identity and set of timeouts, whichever routes lead there. Each is handed to
 * `keep` once, whose matter it is to close it; more than one `close` is one.
 */
export function createBackends(keep: (backend: Backend) => Backend, budget: ConnectionBudget): Backends {
  const opened = new Map<string, Backend>()
  return {
    open(options) {
      const given = Object.entries(options).filter(([, value]) => value !== undefined)
      const key = JSON.stringify(given.sort(([one], [other]) => (one < other ? -1 : 1)))
      const known = opened.get(key)
      if (known !== undefined) return known
      const backend = keep(closedOnce(createBackend(options, budget)))
      opened.set(key, backend)
      return backend
    },
  }
}

function closedOnce(backend: Backend): Backend {
  let closed: Promise<void> | undefined
  return { ...backend, close: () => (closed ??= backend.close()) }
}

/** Gives what `make` gives, made once for each `owner` and each `key` (by its JSON). */
type SharedParts = <T>(owner: object, key: unknown, make: () => T) => T

/**
 * What routes have alike, once: thousands of equal objects don't fit into the caches of a processor, and each request
 * would wait for its own. The key must tell everything by which parts of one owner differ, their kind included.
 */
function createSharedParts(): SharedParts {
  const made = new Map<object, Map<string, unknown>>()
  return <T>(owner: object, key: unknown, make: () => T): T => {
    const own = made.get(owner) ?? new Map<string, unknown>()
    made.set(owner, own)
    const text = JSON.stringify(key)
    if (!own.has(text)) own.set(text, make())
    // The key says the kind, so what is there was made by the same line.
    return own.get(text) as T
  }
}
