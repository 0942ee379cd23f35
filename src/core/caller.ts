import type { OnBehalf } from './outbound.ts'
import type { Secret } from './secret.ts'

/** A JSON value as a claim holds it. Objects in it have no prototype. */
export type ClaimValue =
  string | number | boolean | null | readonly ClaimValue[] | { readonly [name: string]: ClaimValue }

/** All claims of a verified token: deeply frozen, no prototype, so that a claim called `constructor` is just a claim. */
export type Claims = Readonly<Record<string, ClaimValue>>

/** Nobody in particular: the route (or the registry) is in mode `anonymous`. */
export interface AnonymousCaller {
  readonly kind: 'anonymous'
}

/**
 * Somebody whose token was verified. The authenticator hands out the same object for the same token while its result
 * is cached, so what is derived from the token alone (role choice) can be kept in a `WeakMap` keyed by the caller. The
 * token itself is not in it: who is remembered outlasts the request, and the token does not (`TokenInHand`).
 */
export interface AuthenticatedCaller {
  readonly kind: 'authenticated'
  /** Name of the provider in the `auth` section that accepted the token; for logs. */
  readonly provider: string
  /** The issuer: `iss` of the token, or the provider's `issuerUrl` where an introspection answer has none. */
  readonly issuer: string
  /** `sub` of the token; empty when it has none. For people and filters: who somebody is says `identity`. */
  readonly subject: string
  /** Who this is at the issuer, never empty (`callerIdentity`): for cache keys, bounds, session bindings and logs. */
  readonly identity: string
  readonly claims: Claims
  /** End of the token in milliseconds since the epoch; absent when an introspection answer has no `exp`. */
  readonly expiresAtMs: number | undefined
  /** SHA-256 of the token, base64url; for cache keys, computed once. */
  readonly tokenDigest: string
  readonly format: 'jwt' | 'opaque'
}

/**
 * Gives the token that the request at hand came with, for the one place that shows it to a service. Whoever is given this
 * holds it for as long as the request or the call that it is shown in, and no longer.
 */
export type TokenInHand = () => Secret

/** How a caller's identity was found: without `sub` a name of the user, the login session, or the token itself. */
export type IdentityBasis = 'sub' | 'username' | 'sid' | 'token'

/**
 * The identity of a token's subject at its issuer (decisions §2.9): `sub`; without it the client with the `username` of an
 * introspection answer, else the client with `sid`, else the token. The client alone is no identity: all its users share it.
 * The kinds cannot be confused with each other.
 */
export function callerIdentity(claims: Claims, tokenDigest: string, isIntrospected = false): string {
  const { sub, client_id: clientId, azp, username, sid } = claims
  if (isName(sub)) return `sub:${sub}`
  const client = [clientId, azp].find(isName) ?? ''
  // In a JWT `username` is not a registered claim: users may be able to choose it.
  if (isIntrospected && isName(username)) return `username:${JSON.stringify([client, username])}`
  return isName(sid) ? `sid:${JSON.stringify([client, sid])}` : `token:${tokenDigest}`
}

/** Whether recorded claims are an introspection answer: only these have `active` (RFC 7662 §2.2). */
export const isIntrospectionAnswer = (claims: Claims): boolean => claims['active'] === true

/** The basis of an identity that `callerIdentity` returned. */
export const identityBasis = (identity: string): IdentityBasis =>
  identity.slice(0, identity.indexOf(':')) as IdentityBasis

const isName = (value: ClaimValue | undefined): value is string => typeof value === 'string' && value !== ''

/** Whose call it is when something is fetched for a caller. */
export const onBehalfOf = ({ issuer, identity, tokenDigest }: AuthenticatedCaller): OnBehalf => ({
  caller: JSON.stringify([issuer, identity]),
  token: tokenDigest,
})

export type Caller = AnonymousCaller | AuthenticatedCaller

export const ANONYMOUS: AnonymousCaller = Object.freeze({ kind: 'anonymous' })

/** Scopes in a claim: a string split at spaces (RFC 9068 §2.2.3, RFC 7662 §2.2) or an array of strings. */
function scopesIn(claim: ClaimValue | undefined): readonly string[] {
  if (typeof claim === 'string') return claim.split(' ')
  return Array.isArray(claim) ? (claim as readonly ClaimValue[]).filter((one) => typeof one === 'string') : []
}

/** The scopes of a caller's token, from `scope` and from `scp`, which some providers write instead. */
export const scopesOf = (caller: Pick<AuthenticatedCaller, 'claims'>): ReadonlySet<string> =>
  new Set([...scopesIn(caller.claims['scope']), ...scopesIn(caller.claims['scp'])])
