import { type AuthenticatedCaller, type EpochMs, Failure, type RuleCode } from '../core/index.ts'
import type { BrokenRule } from './claim-rules.ts'

/** The token is valid. */
export interface Accepted {
  readonly kind: 'accepted'
  readonly caller: AuthenticatedCaller
  /** Cache expiry. */
  readonly keepUntilMs: EpochMs
  /** Approximate size in the cache, in bytes. */
  readonly weight: number
}

/** The token is invalid, until `changesAtMs` if known. */
export interface Refused {
  readonly kind: 'refused'
  readonly failure: Failure
  readonly changesAtMs?: EpochMs
}

/** Undecided: never cached. */
export interface Undecided {
  readonly kind: 'undecided'
  readonly failure: Failure
}

export type Verdict = Accepted | Refused | Undecided

/** A rejection with the challenge error `invalid_token` (RFC 6750 §3.1). */
export const refused = (rule: RuleCode): Refused => ({
  kind: 'refused',
  failure: new Failure('invalid_token', { rule, challenge: { error: 'invalid_token' } }),
})

/** A rejection for a violated claim rule; an expired token has its own code. */
export function refusedByRule(rule: BrokenRule): Refused {
  if (rule !== 'exp_passed') return refused(rule)
  const failure = new Failure('expired_token', { rule, challenge: { error: 'invalid_token' } })
  return { kind: 'refused', failure }
}

/**
 * Combines verdicts of several providers as early as possible: the first acceptance wins; without one, a failed
 * provider makes it undecided; else the token is rejected (decisions §2.3).
 */
export function firstAccepted(verdicts: readonly Promise<Verdict>[]): Promise<Verdict> {
  const { promise, resolve, reject } = Promise.withResolvers<Verdict>()
  const watch = async (verdict: Promise<Verdict>): Promise<Verdict> => {
    const one = await verdict
    if (one.kind === 'accepted') resolve(one)
    return one
  }
  Promise.all(verdicts.map(watch)).then((all) => resolve(combine(all)), reject)
  return promise
}

/** Combines the verdicts when no provider accepted, or there are none. */
export function combine(verdicts: readonly Verdict[]): Verdict {
  const undecided = verdicts.filter((one) => one.kind === 'undecided')
  // A temporary failure is more useful to the client than one that needs action.
  const worst = undecided.find((one) => one.failure.code === 'identity_provider_unavailable') ?? undecided[0]
  if (worst !== undefined) return worst
  const refusals = verdicts.filter((one) => one.kind === 'refused')
  return refusals.find((one) => one.failure.code === 'expired_token') ?? refusals[0] ?? refused('opaque_unsupported')
}
