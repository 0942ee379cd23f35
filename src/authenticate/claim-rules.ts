import type { Claims, ClaimValue, EpochMs, RuleCode } from '../core/index.ts'
import type { ClockTolerance } from '../oauth/index.ts'

/** The rules checked by `brokenRule`. */
export type BrokenRule = Extract<
  RuleCode,
  | `exp_${string}`
  | `nbf_${string}`
  | 'iat_early'
  | 'aud_missing'
  | 'aud_other'
  | 'iss_other'
  | 'sub_malformed'
  | 'sub_other'
>

/** Whether a rule concerns the audience: for providers with one issuer, another violated rule is more informative. */
export const isAboutAudience = (rule: BrokenRule): boolean => rule === 'aud_missing' || rule === 'aud_other'

export interface ClaimRules {
  readonly issuer: string
  readonly audience: string
  /** The claim with the audience; `aud` unless the provider's tokens have none. */
  readonly audienceClaim: string
  /** The only accepted `sub`; undefined for any. */
  readonly subject?: string | undefined
  readonly tolerance: ClockTolerance
  /** Introspection responses may omit what the provider has already checked (decisions §2.3). */
  readonly isIntrospected: boolean
  /** False with `introspection.requireAudience: false`: `aud` is then not checked. */
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
export function brokenRule(claims: Claims, rules: ClaimRules, nowMs: EpochMs): BrokenRule | undefined {
  const { iss, sub } = claims
  if (iss === undefined ? !rules.isIntrospected : iss !== rules.issuer) return 'iss_other'
  if (rules.requireAudience) {
    const aud = claims[rules.audienceClaim]
    if (aud === undefined) return 'aud_missing'
    if (!namesAudience(aud, rules.audience)) return 'aud_other'
  }
  if (sub !== undefined && typeof sub !== 'string') return 'sub_malformed'
  if (rules.subject !== undefined && sub !== rules.subject) return 'sub_other'
  return brokenTime(claims, rules, nowMs)
}

function brokenTime(claims: Claims, rules: ClaimRules, nowMs: EpochMs): BrokenRule | undefined {
  const { exp, nbf, iat } = claims
  const latest = nowMs / 1000 + rules.tolerance.earlySeconds
  if (exp === undefined && !rules.isIntrospected) return 'exp_missing'
  if (exp !== undefined) {
    if (typeof exp !== 'number') return 'exp_malformed'
    if (nowMs / 1000 - rules.tolerance.expiredSeconds >= exp) return 'exp_passed'
  }
  if (nbf !== undefined) {
    if (typeof nbf !== 'number') return 'nbf_malformed'
    if (latest < nbf) return 'nbf_early'
  }
  return typeof iat === 'number' && latest < iat ? 'iat_early' : undefined
}
