import type { ClaimValue, Claims } from '../core/index.ts'
import type { ClockTolerance } from '../oauth/index.ts'

/** The rule that a token breaks; for the log, and for telling an expired token from a wrong one. */
export type BrokenRule =
  | 'exp is missing'
  | 'exp is not a number'
  | 'exp has passed'
  | 'nbf is not a number'
  | 'nbf is still to come'
  | 'iat is still to come'
  | 'aud is missing'
  | 'aud is not the audience of this provider'
  | 'iss is not the issuer of this provider'
  | 'sub is not a string'
  | 'sub is not the subject of this provider'

export interface ClaimRules {
  readonly issuer: string
  readonly audience: string
  /** The claim that names the audience; `aud` unless the provider's tokens have none. */
  readonly audienceClaim: string
  /** The only `sub` that is accepted; undefined for any. */
  readonly subject?: string | undefined
  readonly tolerance: ClockTolerance
  /** Introspection answers may lack what the provider judged itself (decisions §2.3). */
  readonly isIntrospected: boolean
  /** False only where the provider says `introspection.requireAudience: false`: then `aud` is not looked at. */
  readonly requireAudience: boolean
}

/** Whether `aud` names `audience`: equal, or an element that is equal (RFC 7519 §4.1.3). */
function namesAudience(aud: ClaimValue | undefined, audience: string): boolean {
  if (typeof aud === 'string') return aud === audience
  return Array.isArray(aud) && (aud as readonly ClaimValue[]).every(isString) && aud.includes(audience)
}

const isString = (value: ClaimValue): value is string => typeof value === 'string'

/**
 * The first rule that `claims` break at `nowMs`, or undefined (specification, Authentication 2; decisions §2.3). `exp`
 * is where a token ends, so a token is over when the clock, minus the tolerance, has reached it; `nbf` is where it begins.
 */
export function brokenRule(claims: Claims, rules: ClaimRules, nowMs: number): BrokenRule | undefined {
  const { iss, sub } = claims
  if (iss === undefined ? !rules.isIntrospected : iss !== rules.issuer) return 'iss is not the issuer of this provider'
  if (rules.requireAudience) {
    const aud = claims[rules.audienceClaim]
    if (aud === undefined) return 'aud is missing'
    if (!namesAudience(aud, rules.audience)) return 'aud is not the audience of this provider'
  }
  if (sub !== undefined && typeof sub !== 'string') return 'sub is not a string'
  if (rules.subject !== undefined && sub !== rules.subject) return 'sub is not the subject of this provider'
  return brokenTime(claims, rules, nowMs)
}

function brokenTime(claims: Claims, rules: ClaimRules, nowMs: number): BrokenRule | undefined {
  const { exp, nbf, iat } = claims
  const latest = nowMs / 1000 + rules.tolerance.earlySeconds
  if (exp === undefined && !rules.isIntrospected) return 'exp is missing'
  if (exp !== undefined) {
    if (typeof exp !== 'number') return 'exp is not a number'
    if (nowMs / 1000 - rules.tolerance.expiredSeconds >= exp) return 'exp has passed'
  }
  if (nbf !== undefined) {
    if (typeof nbf !== 'number') return 'nbf is not a number'
    if (latest < nbf) return 'nbf is still to come'
  }
  return typeof iat === 'number' && latest < iat ? 'iat is still to come' : undefined
}
