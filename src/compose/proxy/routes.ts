import { createApply } from '../../apply/index.ts'
import { createAuthorizer, type ProtocolMemory } from '../../authorize/index.ts'
import { createRouteAuthenticate } from '../../authenticate/index.ts'
import type { Clock, Route } from '../../core/index.ts'
import { createForward } from '../../forward/index.ts'
import type { EgressProxy } from '../../net/index.ts'
import { createObtain, type ObtainDeps } from '../../obtain/index.ts'
import type { DecisionLog } from '../../obtain/cloud-sts/index.ts'
import { credentialOf, forwardedNames, headersSetBy, type ResolvedRoute, TYPE_RECORDS } from '../../resources/index.ts'
import type { HeldAuthServers } from './auth-servers.ts'
import type { HeldAuthenticators } from './authenticators.ts'
import type { Backends } from './backends.ts'
import { resourceUrlOf } from '../resource-documents.ts'
import type { SharedParts } from './shared-parts.ts'

/** What all routes of a configuration have in common. */
export interface RouteDeps {
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
export type Keep = <T extends { close(): Promise<void> }>(part: T) => T

/**
 * Builds everything that runs per request of one route; nothing is fetched. `listenUrl` names the resource of a route
 * that has no `resourceUrl`. What it opens is handed to `keep`, whose matter it is to close it. Throws `Failure` for what cannot run.
 */
export function buildRoute(resolved: ResolvedRoute, listenUrl: string, deps: RouteDeps, keep: Keep): Route {
  const { auth, target, timeouts, http2, targetTls, callers, headerForward } = resolved
  const { signsBody, whenRejected } = TYPE_RECORDS[auth.type]
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
    ownedHeaders: [...headersSetBy(auth).map(({ name }) => name), ...forwardedNames(headerForward)],
    whenRejected,
    resourceUrl: isProtected ? resourceUrl : undefined,
    isProtected,
    realm: callers.mode === 'oauth' ? (callers.oauth.realm ?? new URL(resourceUrl).host) : '',
    isRevoked: shared(authenticator, 'isRevoked', () => (caller) => authenticator.isRevoked(caller)),
    authenticate: shared(authenticator, ['authenticate', requiredScopes, allowBoundTokens, publicPaths], () =>
      createRouteAuthenticate(authenticator, { requiredScopes, allowBoundTokens, publicPaths }),
    ),
    authorize: authorizeOf(resolved, deps),
    obtain: obtainOf(resolved, deps, keep),
    apply: shared(backend, ['apply', target.host, signsBody], () =>
      createApply({ host: target.host, needsBody: signsBody, clock }),
    ),
    forward,
  }
}

/** Absent where nothing needs what requests say: their bodies are not read then. */
function authorizeOf(resolved: ResolvedRoute, { obtain, decisions, protocol }: RouteDeps): Route['authorize'] {
  const { name, authorization, limits, target } = resolved
  if (authorization === undefined) return undefined
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
