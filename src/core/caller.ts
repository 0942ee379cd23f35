import type { EpochMs } from './time.ts'
import type { OnBehalf } from './outbound.ts'
import type { Secret } from './secret.ts'

/** The JSON value of a claim. Objects in it have no prototype. */
export type ClaimValue =
  string | number | boolean | null | readonly ClaimValue[] | { readonly [name: string]: ClaimValue }

/** All claims of a verified token: deeply frozen, no prototype, so that a claim called `constructor` is just a claim. */
export type Claims = Readonly<Record<string, ClaimValue>>

/** No claims; it has no prototype, as parsed claims have none. */
export const NO_CLAIMS: Claims = Object.freeze(Object.create(null) as Record<string, never>)

/** The route or registry is in mode `anonymous`. */
export interface AnonymousCaller {
  readonly kind: 'anonymous'
}

/**
 * A caller with a verified token. The authenticator returns the same object while its result is cached, so values
 * derived from the token (role selection) may be kept in a `WeakMap` keyed by the caller. The token is not in it,
 * because a cached caller outlives the request (`PresentedToken`).
 */
export interface AuthenticatedCaller {
  readonly kind: 'authenticated'
  /** Name of the `auth` provider that accepted the token; for logs. */
  readonly provider: string
  /** The issuer: `iss` of the token, or the provider's `issuerUrl` where an introspection answer has none. */
  readonly issuer: string
  /** `sub` of the token; empty without one. For display and filters; `identity` identifies the caller. */
  readonly subject: string
  /**
   * The caller's identity at the issuer, never empty (`callerIdentity`): for cache keys, limits, session bindings and
   * logs.
   */
  readonly identity: string
  readonly claims: Claims
  /** Expiry of the token; absent when an introspection response has no `exp`. */
  readonly expiresAtMs: EpochMs | undefined
  /** SHA-256 of the token, base64url; for cache keys, computed once. */
  readonly tokenDigest: string
  readonly format: 'jwt' | 'opaque'
}

/**
 * Returns the access token of the current request, for the component that sends it to a service. It must not outlive
 * the request or call.
 */
export type PresentedToken = () => Secret

/** The claim behind a caller's identity: `sub`, user name, login session, or the token itself. */
export type IdentityBasis = 'sub' | 'username' | 'sid' | 'token'

/**
 * The identity of a token's subject at its issuer (decisions §2.9): `sub`, else the client with the `username` of an
 * introspection response, else the client with `sid`, else the token. The client alone is no identity, because all
 * its users share it. The kinds have distinct forms.
 */
export function callerIdentity(claims: Claims, tokenDigest: string, isIntrospected = false): string {
  const { sub, client_id: clientId, azp, username, sid } = claims
  if (isName(sub)) return `sub:${sub}`
  const client = [clientId, azp].find(isName) ?? ''
  // In a JWT `username` is not a registered claim; users may be able to choose it.
  if (isIntrospected && isName(username)) return `username:${JSON.stringify([client, username])}`
  return isName(sid) ? `sid:${JSON.stringify([client, sid])}` : `token:${tokenDigest}`
}

/** Whether recorded claims are an introspection answer: only these have `active` (RFC 7662 §2.2). */
export const isIntrospectionAnswer = (claims: Claims): boolean => claims['active'] === true

/** The basis of an identity that `callerIdentity` returned. */
export const identityBasis = (identity: string): IdentityBasis =>
  identity.slice(0, identity.indexOf(':')) as IdentityBasis

const isName = (value: ClaimValue | undefined): value is string => typeof value === 'string' && value !== ''

/** Attributes an outbound request to a caller. */
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

/** Scopes of a caller's token, from `scope` and from `scp`, which some providers use instead. */
export const scopesOf = (caller: Pick<AuthenticatedCaller, 'claims'>): ReadonlySet<string> =>
  new Set([...scopesIn(caller.claims['scope']), ...scopesIn(caller.claims['scp'])])
