import { type AuthenticatedCaller, Failure, type RuleCode } from '../core/index.ts'
import type { BrokenRule } from './claim-rules.ts'

/** The token is good. */
export interface Accepted {
  readonly kind: 'accepted'
  readonly caller: AuthenticatedCaller
  /** Until when the result may be kept, milliseconds since the epoch. */
  readonly keepUntilMs: number
  /** About how many bytes keeping it takes. */
  readonly weight: number
}

/** The token is bad, and would be at the next look (until `changesAtMs`, where that is known). */
export interface Refused {
  readonly kind: 'refused'
  readonly failure: Failure
  readonly changesAtMs?: number
}

/** Nobody could tell: never kept. */
export interface Undecided {
  readonly kind: 'undecided'
  readonly failure: Failure
}

export type Verdict = Accepted | Refused | Undecided

/** A refusal with the challenge error `invalid_token` (RFC 6750 §3.1); of RFC 6750 §3.1. */
export const refused = (rule: RuleCode): Refused => ({
  kind: 'refused',
  failure: new Failure('invalid_token', { rule, challenge: { error: 'invalid_token' } }),
})

/** A refusal for a broken claim rule; an expired token has a code of its own. */
export function refusedByRule(rule: BrokenRule): Refused {
  if (rule !== 'exp_passed') return refused(rule)
  const failure = new Failure('expired_token', { rule, challenge: { error: 'invalid_token' } })
  return { kind: 'refused', failure }
}

/**
 * The verdict of several providers on one token, as soon as it stands: the first acceptance wins without waiting for the
 * others; without one, a provider that could not say leaves it undecided; else it is refused (decisions §2.3).
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

/** One verdict out of those of all providers, none of which accepted (or there are none). */
export function combine(verdicts: readonly Verdict[]): Verdict {
  const undecided = verdicts.filter((one) => one.kind === 'undecided')
  // What may pass by itself tells the client more than what somebody has to mend.
  const worst = undecided.find((one) => one.failure.code === 'identity_provider_unavailable') ?? undecided[0]
  if (worst !== undefined) return worst
  const refusals = verdicts.filter((one) => one.kind === 'refused')
  return refusals.find((one) => one.failure.code === 'expired_token') ?? refusals[0] ?? refused('opaque_unsupported')
}
