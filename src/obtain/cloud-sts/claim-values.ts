import type { Claims, ClaimValue } from '../../core/index.ts'

/** Claims with space-separated lists (RFC 8693 §4.2; `scp` of other issuers). */
const SPACE_SEPARATED = new Set(['scope', 'scp'])

/**
 * Resolves `roleClaim` or `sessionNameClaim`: a top-level claim of exactly that name, dots and slashes included, else
 * the value at that dot path (`realm_access.roles`). Undefined when there is neither.
 */
export function claimAt(claims: Claims, name: string): ClaimValue | undefined {
  if (Object.hasOwn(claims, name)) return claims[name]
  if (!name.includes('.')) return undefined
  let value: ClaimValue | undefined = claims
  for (const segment of name.split('.')) {
    if (!isObject(value) || !Object.hasOwn(value, segment)) return undefined
    value = value[segment]
  }
  return value
}

const NO_CLAIMS: ReadonlySet<string> = new Set()

/**
 * Names of claims that the issuer omitted because of their size, such as `groups` of Entra ID (overage): the token
 * names a source (`_claim_names`, OpenID Connect Core §5.6.2) or only their existence (`hasgroups`).
 */
export function leftOutClaims(claims: Claims): ReadonlySet<string> {
  const { _claim_names: sources, hasgroups } = claims
  if (sources === undefined && hasgroups === undefined) return NO_CLAIMS
  const names = [...(isObject(sources) ? Object.keys(sources) : []), ...(hasgroups === true ? ['groups'] : [])]
  return new Set(names.filter((name) => !Object.hasOwn(claims, name)))
}

/** The omitted claim that `claimAt` would need for `name`. */
export function leftOutAt(claims: Claims, name: string, leftOut: ReadonlySet<string>): string | undefined {
  if (leftOut.size === 0 || Object.hasOwn(claims, name)) return undefined
  return [name, name.split('.', 1)[0] ?? ''].find((one) => leftOut.has(one))
}

/**
 * The values that a mapping's `claim` is compared with (decisions §3.5): string elements of an array, keys of an
 * object, or a single string; `scope` and `scp` are split at spaces. Empty for other values.
 */
export function roleValues(claims: Claims, roleClaim: string): ReadonlySet<string> {
  const value = claimAt(claims, roleClaim)
  if (typeof value === 'string') return new Set(SPACE_SEPARATED.has(roleClaim) ? value.split(' ') : [value])
  if (isArray(value)) return new Set(value.filter((element) => typeof element === 'string'))
  return new Set(isObject(value) ? Object.keys(value) : [])
}

function isArray(value: ClaimValue | undefined): value is readonly ClaimValue[] {
  return Array.isArray(value)
}

function isObject(value: ClaimValue | undefined): value is { readonly [name: string]: ClaimValue } {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
