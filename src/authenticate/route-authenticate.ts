import { ANONYMOUS, type Authenticate, type Caller, Failure, type Known, type Matched } from '../core/index.ts'
import type { Authenticator } from './authenticator.ts'
import { isPublicPath } from './public-paths.ts'
import { createScopeCheck } from './scopes.ts'

/**
 * Refuses a token that is bound to a key (RFC 7800 `cnf`; DPoP, mutual TLS): the proxy checks no proof of possession, so
 * that accepting it as a bearer token would undo the binding. Throws `invalid_token`.
 */
export function refuseBoundToken(caller: Caller): void {
  if (caller.kind === 'authenticated' && caller.claims['cnf'] !== undefined)
    throw new Failure('invalid_token', {
      rule: 'cnf_unsupported',
      challenge: { error: 'invalid_token' },
    })
}

export interface RouteAuthenticateOptions {
  /** Required scopes of a caller's token. */
  readonly requiredScopes: readonly string[]
  /** Accepts key-bound tokens as bearer tokens. Default false. */
  readonly allowBoundTokens?: boolean
  /** Public paths. Default none; resources allow them on `unauthenticated` routes only. */
  readonly publicPaths?: readonly string[]
}

/**
 * The authenticate stage of a route: the authenticator's failures, then `insufficient_scope` (403). Throws
 * `config_error` at once when scopes are required of callers who have none because they are anonymous.
 */
export function createRouteAuthenticate(authenticator: Authenticator, options: RouteAuthenticateOptions): Authenticate {
  const { requiredScopes, allowBoundTokens = false, publicPaths = [] } = options
  if (authenticator.mode === 'anonymous' && requiredScopes.length > 0)
    throw new Failure('config_error', { detail: 'requiredScopes is set on a route with anonymous callers' })
  const checkScopes = createScopeCheck(requiredScopes)

  // The only place that creates `Known`.
  const known = (matched: Matched, caller: Caller): Known => ({ matched, caller }) as Known

  const checked = (matched: Matched, caller: Caller): Known => {
    if (!allowBoundTokens) refuseBoundToken(caller)
    checkScopes(caller)
    return known(matched, caller)
  }

  return (matched) => {
    const { path, query, peer } = matched.inbound
    if (publicPaths.length > 0 && isPublicPath(publicPaths, path)) return known(matched, ANONYMOUS)
    const caller = authenticator.authenticate(matched.authorization, query, peer)
    return caller instanceof Promise ? caller.then((one) => checked(matched, one)) : checked(matched, caller)
  }
}
