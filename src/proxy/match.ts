import { Failure, type Inbound, type Matched, type Route } from '../core/index.ts'
import {
  backendPathOf,
  checkTokenInHost,
  checkTokenInTarget,
  createHeaderPolicy,
  readAsBackends,
  withoutAmzParameters,
} from '../http/index.ts'
import type { InboundRequest } from './inbound-request.ts'
import { RouteTree } from './route-tree.ts'

/** The proxy's name in `Via` (RFC 9110 §7.6.3). */
const VIA = '1.1 extauth'

export type Match = (inbound: InboundRequest) => Matched

/**
 * Stage 1 for a set of routes: the longest prefix at a segment boundary wins. Removes the caller's credentials from
 * the headers before any other stage, and replaces forwarding headers. Throws `not_found`, and `bad_request` for a
 * token in the request target and for a path on an open route that may mean a protected one. The only place that
 * creates `Matched`.
 */
export function createMatch(routes: readonly Route[]): Match {
  // Thousands of routes share a few policies, each with a cache of header names.
  const policies = new Map<string, ReturnType<typeof createHeaderPolicy>>()
  const policyOf = ({ ownedHeaders, passHeaders }: Route): ReturnType<typeof createHeaderPolicy> => {
    const key = JSON.stringify([ownedHeaders, passHeaders])
    const policy = policies.get(key) ?? createHeaderPolicy(ownedHeaders, passHeaders)
    policies.set(key, policy)
    return policy
  }
  const tree = new RouteTree(routes.map((route) => [route.path, { route, policy: policyOf(route) }] as const))

  const hasProtected = routes.some((route) => route.isProtected)
  /** Whether a backend may read the path as one of a protected route. */
  const isProtectedOtherwise = (path: string): boolean => {
    const read = readAsBackends(path)
    return read !== path && tree.find(read)?.route.isProtected === true
  }

  return (inbound) => {
    const entry = tree.find(inbound.path)
    if (entry === undefined) throw new Failure('not_found', { detail: 'no route' })
    const { route, policy } = entry
    inbound.route = route
    if (!route.isProtected && hasProtected && isProtectedOtherwise(inbound.path))
      throw new Failure('bad_request', { detail: 'alternative spelling of a protected path' })
    const { trace } = inbound
    const onDrop = trace === undefined ? undefined : trace.dropped.bind(trace)
    const { headers, authorization } = policy(inbound.request.rawHeaders, onDrop)
    const host = inbound.request.headers.host ?? ''
    checkTokenInTarget(inbound.path, inbound.query, authorization)
    checkTokenInHost(host, authorization)
    for (const part of inbound.connection.peer.forwarded(inbound.request)) headers.push(part)
    headers.push('via', VIA)
    const backendPath = backendTargetOf(route, inbound)
    const matched = mint({ inbound, route, backendPath, authorization, headers })
    trace?.matched(matched)
    return matched
  }
}

function mint(parts: {
  readonly inbound: Inbound
  readonly route: Route
  readonly backendPath: string
  readonly authorization: readonly string[]
  readonly headers: string[]
}): Matched {
  const { inbound, route, backendPath, authorization, headers } = parts
  return {
    inbound,
    route,
    backendPath,
    authorization,
    headers,
    body: NO_BODY,
    view: undefined,
    decision: undefined,
    filterAnswer: undefined,
    insertEvents: undefined,
    sessionToClient: undefined,
  } as unknown as Matched
}

const NO_BODY = Object.freeze({ kind: 'none' })

/** The target's query first, then the caller's, both raw (decisions §7, Path). */
function backendTargetOf(route: Route, inbound: InboundRequest): string {
  const backendPath = backendPathOf(route, inbound.path)
  const query = withoutAmzParameters(inbound.query)
  const { query: own } = route.target
  if (own === '') return query === '' && !inbound.hasEmptyQuery ? backendPath : `${backendPath}?${query}`
  return query === '' ? `${backendPath}?${own}` : `${backendPath}?${own}&${query}`
}
