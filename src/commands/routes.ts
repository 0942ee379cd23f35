import { createApply } from '../apply/index.ts'
import { createRouteAuthenticate, protectedResourceMetadata } from '../authenticate/index.ts'
import type { Clock, LocalHandler, Route } from '../core/index.ts'
import { createForward } from '../forward/index.ts'
import { metadataPath } from '../http/index.ts'
import { createBackend, type EgressProxy } from '../net/index.ts'
import { createObtain, type DecisionLog, type ObtainDeps, type OpenObtain } from '../obtain/index.ts'
import { documentHandler, type Runtime } from '../proxy/index.ts'
import {
  type AuthSection,
  headersSetBy,
  type ResolvedProxy,
  type ResolvedRoute,
  TYPE_RECORDS,
} from '../resources/index.ts'
import type { Authenticators } from './authenticators.ts'

/** What all routes of a process have in common. */
export interface RouteDeps {
  readonly clock: Clock
  readonly authenticators: Authenticators
  readonly decisions: DecisionLog
  readonly obtain: ObtainDeps
  readonly egressProxy: EgressProxy | undefined
}

/**
 * Builds everything that runs per request from a resolved configuration; nothing is fetched. `listenUrl` names the
 * resource of routes that have no `resourceUrl` (only on a loopback bind). Throws `Failure` for what cannot run.
 */
export function buildRuntime(config: ResolvedProxy, listenUrl: string, deps: RouteDeps): Runtime {
  const built: { route: Route; obtain: OpenObtain }[] = []
  const close = async (): Promise<void> => {
    await Promise.all(built.flatMap(({ route, obtain }) => [route.forward.close(), obtain.close()]))
  }
  try {
    for (const resolved of config.routes) built.push(buildRoute(resolved, listenUrl, deps))
  } catch (error) {
    void close()
    throw error
  }
  return { routes: built.map(({ route }) => route), localHandlers: documentsOf(config, listenUrl), close }
}

function buildRoute(resolved: ResolvedRoute, listenUrl: string, deps: RouteDeps): { route: Route; obtain: OpenObtain } {
  const { auth, target, timeouts, callers } = resolved
  const { signsBody, whenRejected } = TYPE_RECORDS[auth.type]
  const isProtected = callers.mode === 'oauth'
  const mapping = { path: resolved.path, targetPath: target.path, exactTarget: resolved.exactTarget }
  const backend = createBackend({
    origin: target.origin,
    connectMs: timeouts.connectMs,
    firstByteMs: timeouts.firstByteMs,
    idleMs: timeouts.idleMs,
    http2: resolved.http2,
    targetTls: resolved.targetTls,
    egressProxy: deps.egressProxy,
  })
  const decisions = deps.decisions.forRoute(resolved.name)
  const { onMatcherError } = resolved
  const obtain = decisions.recording(createObtain(auth, { ...deps.obtain, decisions, onMatcherError }))
  const route: Route = {
    ...mapping,
    name: resolved.name,
    type: auth.type,
    targetQuery: target.query,
    targetHost: target.host,
    targetOrigin: target.origin,
    ownedHeaders: headersSetBy(auth).map(({ name }) => name),
    whenRejected,
    resourceUrl: isProtected ? resourceUrlOf(resolved, listenUrl) : undefined,
    isProtected,
    allowUpgrade: resolved.allowUpgrade,
    bufferedBodyBytes: resolved.bufferedBodyBytes,
    sseKeepAliveMs: resolved.sseKeepAliveMs,
    realm: callers.mode === 'oauth' ? callers.oauth.realm : '',
    requiredScopes: resolved.requiredScopes,
    authenticate: createRouteAuthenticate(deps.authenticators.get(callers), {
      requiredScopes: resolved.requiredScopes,
      publicPaths: callers.mode === 'oauth' ? callers.oauth.publicPaths : [],
    }),
    obtain,
    apply: createApply({ host: target.host, needsBody: signsBody, clock: deps.clock }),
    forward: createForward(
      { ...mapping, targetOrigin: target.origin, sseKeepAliveMs: resolved.sseKeepAliveMs },
      { backend, clock: deps.clock },
    ),
  }
  return { route, obtain }
}

const resourceUrlOf = (route: ResolvedRoute, listenUrl: string): string =>
  route.resourceUrl ?? new URL(route.path, listenUrl).href.replace(/\/$/, '')

/** The route's callers with the scopes that it requires among those that are advertised: clients ask for what they see. */
function withScopes({ callers, requiredScopes }: ResolvedRoute): AuthSection {
  if (callers.mode === 'anonymous') return callers
  const scopesSupported = [...new Set([...requiredScopes, ...callers.oauth.scopesSupported])]
  return { ...callers, oauth: { ...callers.oauth, scopesSupported } }
}

/**
 * The RFC 9728 documents. Each protected route has its own; the one without a resource path belongs to the only
 * protected route, or to the one at `/` (decisions §2.7).
 */
function documentsOf(config: ResolvedProxy, listenUrl: string): readonly LocalHandler[] {
  const documents = new Map<string, object>()
  const isProtected = (route: ResolvedRoute): boolean => route.callers.mode === 'oauth'
  const shielded = config.routes.filter(isProtected)
  for (const route of shielded) {
    const resourceUrl = resourceUrlOf(route, listenUrl)
    const document = protectedResourceMetadata({ resourceUrl, auth: withScopes(route) })
    documents.set(metadataPath(resourceUrl), document)
    // Behind something that adds or cuts a prefix, the document is still found by the path that arrives here.
    const local = metadataPath(new URL(route.path, listenUrl).href)
    if (!documents.has(local)) documents.set(local, document)
    if (route.path === '/' || shielded.length === 1) documents.set(metadataPath(new URL('/', listenUrl).href), document)
  }
  return [...documents].map(([address, document]) => documentHandler(address, document))
}
