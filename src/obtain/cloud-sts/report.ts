import type { Log, Metrics } from '../../core/index.ts'
import type { Decision } from './decision.ts'

/** Counts and logs role decisions, without claim values: once per token, because the decision is cached with it. */
export function createReport(
  config: string,
  { log, metrics }: { readonly log: Log; readonly metrics: Metrics },
): (decision: Decision) => void {
  const decisions = metrics.counter(
    'extauth_role_decisions_total',
    'Role decisions, by outcome: mapping, fallback, or the failure reason.',
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
        log.info({ config, mapping, outcome, claim: leftOut }, 'role mapping needs a claim that the issuer omitted')
      if (outcome !== 'error' && outcome !== 'limit') continue
      failedMatchers.with(outcome).add()
      log.info({ config, mapping, outcome, ...position, reason, missingKey }, 'role matcher evaluation failed')
    }
  }
}
