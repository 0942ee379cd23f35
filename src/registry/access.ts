import { refuseBoundToken } from '../authenticate/index.ts'
import { ANONYMOUS, type Caller, type ClientRequest, type Failure } from '../core/index.ts'
import { challengeFor } from '../http/index.ts'

/** What the registry needs of an authenticator. */
export interface TokenCheck {
  /** Who sent these `Authorization` lines; at once when it is known already. Throws or rejects with `Failure`. */
  authenticate(authorization: readonly string[], query: string, peer?: string): Caller | Promise<Caller>
}

/** Who may read the registry (specification A). */
export type AccessPolicy =
  | { readonly mode: 'anonymous' }
  | {
      readonly mode: 'oauth'
      readonly tokens: TokenCheck
      /** Address of the client that sent a request, as far as it is believed; introspection is fair between these. */
      readonly peerOf: (request: ClientRequest) => string
      readonly realm: string
      /** URL of the RFC 9728 document. */
      readonly resourceMetadata: string
      /** Whether a path is open by configuration (`publicPaths`). */
      readonly isPublicPath: (path: string) => boolean
    }

/** Routes that are open whatever the configuration says (specification, Authentication 6). */
const OPEN_ROUTES: ReadonlySet<string> = new Set([
  '/openapi.json',
  '/.well-known/oauth-protected-resource',
  '/.well-known/*',
])

export interface MatchedRequest {
  readonly raw: ClientRequest
  /** In origin-form. */
  readonly target: string
  /** Pattern of the matched route; undefined when there is none. */
  readonly route: string | undefined
  /** Parameters as the route will use them, decoded once. */
  readonly params: unknown
}

/** The path that a matched route serves, spelled in one way: what is looked up in `publicPaths` is what is served. */
export function canonicalPath(route: string, params: unknown): string {
  const values = (params ?? {}) as Readonly<Record<string, string>>
  return route.replace(/:(\w+)/g, (_, name: string) => encodeURIComponent(values[name] ?? ''))
}

/** Values of all `Authorization` lines; `headers` of Node keeps only the first. */
export function authorizationOf(request: ClientRequest): readonly string[] {
  const { rawHeaders } = request
  const values: string[] = []
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]
    if (name?.length === 13 && name.toLowerCase() === 'authorization') values.push(rawHeaders[index + 1] ?? '')
  }
  return values
}

/** A request target without its query. */
export const pathOf = (target: string): string => {
  const mark = target.indexOf('?')
  return mark === -1 ? target : target.slice(0, mark)
}

/** The query of a request target; empty when there is none. */
export const queryOf = (target: string): string => {
  const mark = target.indexOf('?')
  return mark === -1 ? '' : target.slice(mark + 1)
}

/**
 * Lets a request pass, with its caller; `ANONYMOUS` on open routes and paths. A request that matches no route needs a
 * token like any other, so that nobody learns from a 404 what there is, unless its path is open. Throws or rejects with
 * `Failure`.
 */
export function authorize(policy: AccessPolicy, request: MatchedRequest): Caller | Promise<Caller> {
  if (policy.mode === 'anonymous') return ANONYMOUS
  const { route } = request
  if (route !== undefined && OPEN_ROUTES.has(route)) return ANONYMOUS
  const { raw, target } = request
  const path = route === undefined ? pathOf(target) : canonicalPath(route, request.params)
  if (policy.isPublicPath(path)) return ANONYMOUS
  const caller = policy.tokens.authenticate(authorizationOf(raw), queryOf(target), policy.peerOf(raw))
  return caller instanceof Promise ? caller.then(withoutBinding) : withoutBinding(caller)
}

function withoutBinding(caller: Caller): Caller {
  refuseBoundToken(caller)
  return caller
}

/** The challenge that a failure calls for; none in mode `anonymous`, where a token would change nothing. */
export function challengeOf(policy: AccessPolicy, failure: Failure): string | undefined {
  if (policy.mode === 'anonymous') return undefined
  const { realm, resourceMetadata } = policy
  return challengeFor(failure, { realm, resourceMetadata, requiredScopes: [] })
}
