import { hash } from 'node:crypto'
import { type AuthenticatedCaller, callerIdentity, type Claims } from '../core/index.ts'
import type { Provider } from './provider.ts'
import type { Accepted } from './verdict.ts'

/** How long a verified JWT is taken at its word (decisions §2.5). */
const JWT_KEPT_MS = 5 * 60_000
/** The same for an introspected token, which may have been revoked meanwhile. */
const INTROSPECTED_KEPT_MS = 60_000
/** Claims take about so many times the bytes of what they were parsed from. */
const PARSED_SIZE = 2
/** What a remembered caller takes beside them: key, object, digest, its place in the order of use. */
const CALLER_BYTES = 1024
/** The last moment that a Date can be (ECMA-262 §21.4.1.1); a token may claim to live longer. */
const END_OF_TIME_MS = 8.64e15

export interface Evidence {
  readonly provider: Pick<Provider, 'name' | 'issuer' | 'jwtRules'>
  readonly token: string
  readonly format: 'jwt' | 'opaque'
  readonly claims: Claims
  readonly isIntrospected: boolean
  /** Bytes that `claims` were parsed from. */
  readonly bytes: number
  /** Ends the token besides `exp` of `claims`: the `exp` of a JWT that was introspected. Seconds since the epoch. */
  readonly notAfter?: number
}

/** The caller that a token which passed all rules stands for, and how long that may be remembered. */
export function accept(evidence: Evidence, nowMs: number): Accepted {
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
