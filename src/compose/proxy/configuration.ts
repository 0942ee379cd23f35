import { setImmediate } from 'node:timers/promises'
import type { AuditTrail, PreparedTrail } from '../../audit/index.ts'
import { createApply } from '../../apply/index.ts'
import { createRouteAuthenticate } from '../../authenticate/index.ts'
import { createAuthorizer, type ProtocolMemory } from '../../authorize/index.ts'
import type { ConnectionService } from '../../connections/index.ts'
import { causeOf, type Clock, type ConnectLinks, type Route, type Secrets } from '../../core/index.ts'
import { createElicitation, isListing } from '../../elicitation/index.ts'
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
import {
  createListingObtain,
  createObtain,
  createSelectedObtain,
  type ObtainDeps,
  type OpenObtain,
} from '../../obtain/index.ts'
import type { Runtime } from '../../proxy/index.ts'
import {
  authsOf,
  connectionsOf,
  credentialOf,
  forwardedNames,
  headersSetBy,
  type ResolvedAuth,
  type ResolvedRoute,
  TYPE_RECORDS,
} from '../../resources/index.ts'
import { placed } from '../config-error.ts'
import { VERSION } from '../version.ts'
import { resourceDocuments, resourceUrlOf } from '../resource-documents.ts'
import type { HeldAuthenticators, HeldAuthServers, LazyModules } from './pools.ts'
import type { Resources } from './readiness.ts'
import type { Services } from './services.ts'
import { prepareSharedCache } from './shared-cache.ts'

/** A prepared configuration: everything is built and opened, nothing has been fetched for it. */
export interface Candidate {
  readonly config: ResolvedProxy
  /** Closing it releases whatever no other configuration uses. */
  readonly runtime: Runtime
  /** The secrets and files that this configuration references. */
  readonly resources: Resources
  /** Resolves when stores are connected, or after two seconds: a store may be down. */
  prepared(): Promise<void>
  /** Makes the configuration active and starts prefetching, such as keys of identity providers. */
  activate(): void
  /** Releases whatever only this configuration opened; it never becomes active. */
  discard(): void
}

const PREPARE_MS = 2_000

/** Building this many routes takes some milliseconds. */
export const ROUTES_PER_TURN = 100

/**
 * Builds a configuration with its lazy `modules`. After every `ROUTES_PER_TURN` routes it yields to
 * requests with `turn`. Rejects with a `ConfigError` that locates the problem; nothing stays open then.
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
  const discard = (): void => {
    close().catch((cause: unknown) => log.error({ cause: causeOf(cause) }, 'closing a rejected configuration failed'))
  }
  try {
    const keep: Keep = (part) => stack.adopt(part, (one) => one.close())
    const { places } = config
    const { materials, authenticators, obtain } = holdings
    const { secrets, certificate, tokenFile } = materials
    const authServers = services.authServers.hold(config, listenUrl, modules)
    stack.defer(() => authServers.release())
    const connections = services.connections.hold(config, listenUrl, modules, authServers)
    stack.defer(() => connections.release())
    const receivers = services.tracing.hold(config.routes, services.receivers, modules.telemetry)
    stack.defer(() => receivers.release())
    const backends = createBackends(keep, services.backendConnections)
    const shared = createSharedParts()
    const { service } = connections
    const deps = {
      clock,
      authenticators,
      authServers,
      connections: service,
      decisions,
      egressProxy,
      obtain: service === undefined ? obtain : { ...obtain, connections: service.accounts },
      backends,
      shared,
      protocol,
      isAudited: config.audit !== undefined,
    }
    const routes: Route[] = []
    for (const resolved of config.routes) {
      routes.push(placed(places, { route: resolved.name }, () => buildRoute(resolved, listenUrl, deps, keep)))
      if (routes.length % ROUTES_PER_TURN === 0) await turn()
    }
    const localHandlers = [
      ...resourceDocuments(config, listenUrl),
      ...authServers.all.flatMap(({ handlers }) => handlers),
      ...(service?.handlers ?? []),
    ]
    const sharedCache = keep(
      placed(places, { process: 'cache' }, () =>
        prepareSharedCache(config, { ...services, slot: services.sharing, secrets }),
      ),
    )
    const trail = placed(places, { process: 'audit' }, () => openTrail(config, services.audit, secrets))
    stack.defer(() => trail.release())
    const runtime = { routes, localHandlers, close }
    const providersWithoutKeys = (): readonly string[] => authenticators.withoutKeys()
    const storeRemarks = () => {
      const { problem } = sharedCache
      const alone = problem === undefined ? [] : [`credentials are not shared with other replicas: ${problem}`]
      return [...services.stores.states().flatMap(({ remarks }) => remarks), ...alone]
    }
    const resources = {
      clock,
      secrets,
      certificate,
      tokenFile,
      providersWithoutKeys,
      storeRemarks,
      authServers: authServers.all,
      connections: service,
    }
    const prepared = async (): Promise<void> => {
      await checkHttpClientInUse()
      await atMost(
        PREPARE_MS,
        Promise.all([...authServers.all, ...(service === undefined ? [] : [service])].map((one) => one.opened())),
      )
    }
    const activate = (): void => {
      authenticators.start()
      trail.activate()
      sharedCache.activate()
      receivers.activate()
    }
    return { config, runtime, resources, prepared, activate, discard }
  } catch (error) {
    discard()
    throw error
  }
}

function openTrail({ audit }: ResolvedProxy, trail: AuditTrail, secrets: Secrets): PreparedTrail {
  const handle = audit?.keySecretRef === undefined ? undefined : secrets.handle(audit.keySecretRef, 'bytes')
  return trail.prepare(audit, handle && (() => handle.current()))
}

async function atMost(ms: number, work: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, ms)))
  await Promise.race([work, late])
  clearTimeout(timer)
}

/** Dependencies that all routes of a configuration share. */
interface RouteDeps {
  readonly clock: Clock
  readonly authenticators: Pick<HeldAuthenticators, 'get'>
  readonly authServers: Pick<HeldAuthServers, 'of' | 'issuerOf'>
  readonly connections: ConnectionService | undefined
  readonly decisions: DecisionLog
  readonly obtain: ObtainDeps
  readonly backends: Backends
  readonly egressProxy: EgressProxy | undefined
  readonly shared: SharedParts
  readonly protocol: ProtocolMemory
  readonly isAudited: boolean
}

/** Registers a part for disposal and returns it. */
type Keep = <T extends { close(): Promise<void> }>(part: T) => T

/**
 * Builds the request pipeline of one route without fetching anything. `listenUrl` is the base of the resource URL
 * of a route without `resourceUrl`. `keep` owns all opened parts. Throws `Failure` for a route that can't run.
 */
function buildRoute(resolved: ResolvedRoute, listenUrl: string, deps: RouteDeps, keep: Keep): Route {
  const { auth, target, timeouts, http2, targetTls, callers, headerForward } = resolved
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
  const own = obtainOf(resolved, deps, keep)
  const links = linksOf(auths, deps)
  const { log, metrics } = deps.obtain
  return {
    ...resolved,
    type: auth.type,
    ownedHeaders: [
      ...new Set(auths.flatMap((one) => headersSetBy(one).map(({ name }) => name))),
      ...forwardedNames(headerForward),
    ],
    whenRejected: whenRejectedOf(auth),
    resourceUrl: isProtected ? resourceUrl : undefined,
    isProtected,
    realm: callers.mode === 'oauth' ? (callers.oauth.realm ?? new URL(resourceUrl).host) : '',
    isRevoked: shared(authenticator, 'isRevoked', () => (caller) => authenticator.isRevoked(caller)),
    authenticate: shared(authenticator, ['authenticate', requiredScopes, allowBoundTokens, publicPaths], () =>
      createRouteAuthenticate(authenticator, { requiredScopes, allowBoundTokens, publicPaths }),
    ),
    authorize: authorizeOf(resolved, own, deps),
    obtain: withCredentials(own, resolved, deps, keep),
    apply: shared(backend, ['apply', target.host, signsBody], () =>
      createApply({ host: target.host, needsBody: signsBody, clock }),
    ),
    forward,
    elicitation:
      links &&
      createElicitation({
        route: resolved.name,
        links,
        providers: connectionsOf(resolved),
        listedWith: auth.upstream?.isConnection === true ? auth.upstream.provider : undefined,
        version: VERSION,
        clock,
        log,
        metrics,
      }),
  }
}

/** Another login at the proxy gives no other credential of a connection: no 401. */
const whenRejectedOf = ({ type, upstream }: ResolvedAuth): Route['whenRejected'] =>
  upstream?.isConnection === true ? 'backend_rejected_credential' : TYPE_RECORDS[type].whenRejected

/** The links of a route that sends credentials of connections. */
function linksOf(auths: readonly ResolvedAuth[], { connections }: RouteDeps): ConnectLinks | undefined {
  const own = auths.filter(({ upstream }) => upstream?.isConnection === true)
  if (own.length === 0) return undefined
  return connections?.links(
    new Map(
      own.flatMap((auth) => {
        const [header] = headersSetBy(auth)
        if (header === undefined || auth.upstream === undefined) return []
        const prefix = auth.type === 'headerInjection' ? '' : 'Bearer '
        return [[auth.upstream.provider, { name: header.name, prefix }] as const]
      }),
    ),
  )
}

/** Undefined where neither rules, credentials nor the audit trail depend on request bodies: these are not read then. */
function authorizeOf(
  { name, authorization, credentials, limits, target }: ResolvedRoute,
  source: OpenObtain,
  { obtain, decisions, protocol, isAudited }: RouteDeps,
): Route['authorize'] {
  const needsView = authorization !== undefined || credentials.length > 0 || source.readsRequest()
  if (!needsView && !isAudited) return undefined
  const own = decisions.forRoute(name)
  return createAuthorizer({
    route: name,
    authorization,
    // The audit trail alone refuses no other protocol than MCP.
    passesOthers: !needsView,
    limitBytes: Math.min(limits.evaluatedBody, limits.bufferedBody),
    metrics: obtain.metrics,
    memory: protocol.of(name, `${target.origin}${target.path}`),
    onDecision: (known, { mcp }, decision) => own.authorized(known, mcp, decision),
  })
}

/** The credential source of the route, with the exceptions for some requests. */
function withCredentials(own: OpenObtain, resolved: ResolvedRoute, deps: RouteDeps, keep: Keep): Route['obtain'] {
  if (resolved.credentials.length === 0) return own
  const entries = resolved.credentials.map(({ auth, ...request }) => {
    const whenRejected = whenRejectedOf(auth)
    const obtain = { ...obtainOf({ ...resolved, auth }, deps, keep), whenRejected: () => whenRejected }
    return Object.assign({ obtain }, request)
  })
  return createSelectedObtain(own, entries, { route: resolved.name, metrics: deps.obtain.metrics })
}

/** Routes share a source unless the credential is per caller. */
function obtainOf(resolved: ResolvedRoute, deps: RouteDeps, keep: Keep): OpenObtain {
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
  const obtain = keep(createObtain(auth, { ...deps.obtain, ...own, decisions, onMatcherError }, headerForward))
  const links = linksOf([auth], deps)
  const provider = auth.upstream?.provider ?? ''
  return decisions.recording(
    links === undefined ? obtain : createListingObtain(auth, obtain, () => links.listing(provider), isListing),
  )
}

/** The backend pools of one configuration. */
export interface Backends {
  /** Returns the connection pool of a backend; routes with equal options share it. */
  readonly open: (options: BackendOptions) => Backend
}

/**
 * Opens one connection pool per origin, TLS identity and set of timeouts. `keep` receives each pool once
 * and closes it; closing twice is harmless.
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

/** Returns the result of `make`, which runs once per `owner` and `key` (compared as JSON). */
type SharedParts = <T>(owner: object, key: unknown, make: () => T) => T

/**
 * Creates equal parts of routes once: thousands of equal objects exceed the CPU caches and slow down each request.
 * The key must contain everything in which parts of one owner differ, including their kind.
 */
function createSharedParts(): SharedParts {
  const made = new Map<object, Map<string, unknown>>()
  return <T>(owner: object, key: unknown, make: () => T): T => {
    const own = made.get(owner) ?? new Map<string, unknown>()
    made.set(owner, own)
    const text = JSON.stringify(key)
    if (!own.has(text)) own.set(text, make())
    // The key contains the kind, so the value has the type of this call.
    return own.get(text) as T
  }
}
