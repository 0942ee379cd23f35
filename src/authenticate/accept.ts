import { hash } from 'node:crypto'
import { type AuthenticatedCaller, callerIdentity, type Claims, type EpochMs } from '../core/index.ts'
import type { Provider } from './provider.ts'
import type { Accepted } from './verdict.ts'

/** How long the result for a verified JWT is cached (decisions §2.5). */
const JWT_KEPT_MS = 5 * 60_000
/** The same for an introspected token, which may be revoked meanwhile. */
const INTROSPECTED_KEPT_MS = 60_000
/** Parsed claims take about this multiple of their JSON size. */
const PARSED_SIZE = 2
/** Additional memory per cached caller: key, object, digest, LRU entry. */
const CALLER_BYTES = 1024
/** The latest time a Date can represent (ECMA-262 §21.4.1.1); a token may claim a later expiry. */
const END_OF_TIME_MS = 8.64e15

export interface Evidence {
  readonly provider: Pick<Provider, 'name' | 'issuer' | 'jwtRules'>
  readonly token: string
  readonly format: 'jwt' | 'opaque'
  readonly claims: Claims
  readonly isIntrospected: boolean
  /** Bytes that `claims` were parsed from. */
  readonly bytes: number
  /**
   * An expiry in addition to `exp` of `claims`: the `exp` of a JWT that was introspected. Seconds since the epoch.
   */
  readonly notAfter?: number
}

/** Builds the caller of a token that passed all rules, and its cache lifetime. */
export function accept(evidence: Evidence, nowMs: EpochMs): Accepted {
  const { provider, token, format, claims, isIntrospected } = evidence
  const { exp, iss, sub } = claims
  const ends = [exp, evidence.notAfter].filter((end) => typeof end === 'number').map((end) => end * 1000)
  const expiresAtMs = ends.length === 0 ? undefined : Math.min(END_OF_TIME_MS, ...ends)
  const tokenDigest = hash('sha256', token, 'base64url')
  const caller: AuthenticatedCaller = Object.freeze({
    kind: 'authenticated',
    provider: provider.name,
    issuer: typeof iss === 'string' ? iss : provider.issuer,
    subject: typeof sub === 'string' ? sub : '',
    identity: callerIdentity(claims, tokenDigest, isIntrospected),
    claims,
    expiresAtMs,
    tokenDigest,
    format,
  })
  const keptMs = nowMs + (isIntrospected ? INTROSPECTED_KEPT_MS : JWT_KEPT_MS)
  const endMs = expiresAtMs === undefined ? keptMs : expiresAtMs + provider.jwtRules.tolerance.expiredSeconds * 1000
  return {
    kind: 'accepted',
    caller,
    keepUntilMs: Math.min(keptMs, endMs),
    weight: CALLER_BYTES + PARSED_SIZE * evidence.bytes,
  }
}
