import type { Log, Metrics } from '../../core/index.ts'
import type { Decision } from './decision.ts'

/**
 * Counts and logs role decisions, without values of claims: once per token, because the decision is kept with it.
 */
export function createReport(
  config: string,
  { log, metrics }: { readonly log: Log; readonly metrics: Metrics },
): (decision: Decision) => void {
  const decisions = metrics.counter(
    'extauth_role_decisions_total',
    'Role decisions, by how they ended: mapping, fallback, or the reason of the refusal.',
    ['outcome'],
  )
  const failedMatchers = metrics.counter(
    'extauth_role_matcher_failures_total',
    'Matchers that could not be evaluated: an error (a missing key, a wrong type) or the limit.',
    ['reason'],
  )
  return ({ choice, refusal }) => {
    decisions.with(refusal ?? choice.by ?? 'no_role').add()
    for (const { outcome, mapping, position, reason, missingKey, leftOut } of choice.steps) {
      if (leftOut !== undefined)
        log.info({ config, mapping, outcome, claim: leftOut }, 'role mapping reads a claim that the issuer left out')
      if (outcome !== 'error' && outcome !== 'limit') continue
      failedMatchers.with(outcome).add()
      log.info({ config, mapping, outcome, ...position, reason, missingKey }, 'role matcher could not be evaluated')
    }
  }
}
