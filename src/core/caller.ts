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

/**
 * Who a token stands for at its issuer (decisions §2.9): the subject; without one the client (`client_id`, else `azp`);
 * without either the token itself. The kinds can't be mistaken for each other.
 */
export function callerIdentity(claims: Claims, tokenDigest: string): string {
  const { sub, client_id: clientId, azp } = claims
  if (isName(sub)) return `sub:${sub}`
  if (isName(clientId)) return `client:${clientId}`
  return isName(azp) ? `client:${azp}` : `token:${tokenDigest}`
}

const isName = (value: ClaimValue | undefined): value is string => typeof value === 'string' && value !== ''

/** Whose call it is when something is fetched for a caller. */
export const onBehalfOf = ({ issuer, identity, tokenDigest }: AuthenticatedCaller): OnBehalf => ({
  caller: JSON.stringify([issuer, identity]),
  token: tokenDigest,
})

export type Caller = AnonymousCaller | AuthenticatedCaller

export const ANONYMOUS: AnonymousCaller = Object.freeze({ kind: 'anonymous' })
