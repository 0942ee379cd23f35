import { scopesIn } from '../../oauth/index.ts'
import type { AuthServerResource } from '../config.ts'
import type { ClientBounds } from '../clients/client.ts'
import { OAuthError } from '../oauth-error.ts'
import type { ResourceNames } from '../resource-names.ts'

const one = (given: string | readonly string[] | undefined): string | undefined => {
  if (given === undefined || typeof given === 'string') return given || undefined
  const [resource, ...others] = new Set(given)
  if (others.length > 0) throw new OAuthError('invalid_target', 'only one resource is allowed')
  return resource || undefined
}

/** Whether a caller's limits include a resource; without limits all. */
const takesIn = (
  bounds: Pick<ClientBounds, 'resources'> | undefined,
  { url }: AuthServerResource,
  names: ResourceNames,
) => bounds?.resources === undefined || bounds.resources.some((name) => names.find(name)?.url === url)

/**
 * The target resource of a request without a login: the one it names (RFC 8707), else the only allowed one. Throws
 * `OAuthError` `invalid_target`.
 */
export function targetOf(
  given: string | readonly string[] | undefined,
  names: ResourceNames,
  bounds: Pick<ClientBounds, 'resources'> | undefined,
): AuthServerResource {
  const named = one(given)
  if (named !== undefined) {
    const resource = names.find(named)
    if (resource === undefined || !takesIn(bounds, resource, names))
      throw new OAuthError(
        'invalid_target',
        'resource is not served by this authorization server, or not allowed for this client',
      )
    return resource
  }
  const [only, ...others] = bounds?.resources ?? []
  const resource =
    bounds?.resources === undefined ? names.only : others.length === 0 ? names.find(only ?? '') : undefined
  if (resource === undefined) throw new OAuthError('invalid_target', 'resource is missing')
  return resource
}

/**
 * The resource that a trusted assertion names; undefined when it is not served here, or not allowed for this client.
 */
export function assertedTarget(
  name: string,
  names: ResourceNames,
  bounds: Pick<ClientBounds, 'resources'> | undefined,
): AuthServerResource | undefined {
  const resource = names.find(name)
  return resource !== undefined && takesIn(bounds, resource, names) ? resource : undefined
}

/**
 * The granted scopes: those requested (else all) that every limit and the resource allow. Throws `OAuthError`
 * `invalid_scope` when none of the requested scopes remains.
 */
export function grantedScope(
  asked: string | undefined,
  { scopes }: AuthServerResource,
  limits: readonly ClientBounds['scopes'][],
): readonly string[] {
  const named = scopesIn(asked)
  const wanted = named.length === 0 ? scopes : named
  const granted = wanted.filter(
    (scope) => scopes.includes(scope) && limits.every((limit) => limit === undefined || limit.includes(scope)),
  )
  if (granted.length === 0 && named.length > 0)
    throw new OAuthError('invalid_scope', 'none of the requested scopes may be granted')
  return granted
}
