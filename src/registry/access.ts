import { refuseBoundToken } from '../authenticate/index.ts'
import { ANONYMOUS, type Caller, type ClientRequest, type Failure } from '../core/index.ts'
import { challengeFor } from '../http/index.ts'

/** The part of an authenticator that the registry uses. */
export interface TokenCheck {
  /**
   * Authenticates the caller of these `Authorization` lines; synchronous if cached. Throws or rejects with `Failure`.
   */
  authenticate(authorization: readonly string[], query: string, peer?: string): Caller | Promise<Caller>
}

/** Who may read the registry (specification A). */
export type AccessPolicy =
  | { readonly mode: 'anonymous' }
  | {
      readonly mode: 'oauth'
      readonly tokens: TokenCheck
      /** Trusted address of the client; introspection is fair between addresses. */
      readonly peerOf: (request: ClientRequest) => string
      readonly realm: string
      /** URL of the RFC 9728 document. */
      readonly resourceMetadata: string
      /** Whether a path is open by configuration (`publicPaths`). */
      readonly isPublicPath: (path: string) => boolean
    }

/** Routes that are open regardless of the configuration (specification, Authentication 6). */
const OPEN_ROUTES: ReadonlySet<string> = new Set([
  '/openapi.json',
  '/.well-known/oauth-protected-resource',
  '/.well-known/*',
])

export interface MatchedRequest {
  readonly raw: ClientRequest
  /** In origin-form. */
  readonly target: string
  /** Pattern of the matched route; undefined if none. */
  readonly route: string | undefined
  /** Decoded parameters of the route. */
  readonly params: unknown
}

/** The canonical path of a matched route: the path checked against `publicPaths` is the path served. */
export function canonicalPath(route: string, params: unknown): string {
  const values = (params ?? {}) as Readonly<Record<string, string>>
  return route.replace(/:(\w+)/g, (_, name: string) => encodeURIComponent(values[name] ?? ''))
}

/** Values of all `Authorization` lines; Node's `headers` keeps only the first. */
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

/** The query of a request target; may be empty. */
export const queryOf = (target: string): string => {
  const mark = target.indexOf('?')
  return mark === -1 ? '' : target.slice(mark + 1)
}

/**
 * Authorizes a request and returns its caller; `ANONYMOUS` on open routes and paths. A request without a route needs a
 * token, too, so that a 404 reveals nothing, unless its path is open. Throws or rejects with `Failure`.
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

/** The challenge for a failure; none in mode `anonymous`. */
export function challengeOf(policy: AccessPolicy, failure: Failure): string | undefined {
  if (policy.mode === 'anonymous') return undefined
  const { realm, resourceMetadata } = policy
  return challengeFor(failure, { realm, resourceMetadata, requiredScopes: [] })
}
