import type { Decision } from '../../obtain/cloud-sts/index.ts'
import type { EpochMs, MonotonicMs, RuleDecision } from '../../core/index.ts'
import { decideFor, notesOn } from '../explain/explain-report.ts'
import { decideRules } from '../explain/request-rules.ts'
import type { ReadyCase } from './cases.ts'

/** An unmet expectation. */
export interface Mismatch {
  readonly what: 'role' | 'reason' | 'sessionName' | 'allowed' | 'rule'
  readonly expected: string
  readonly actual: string
}

/** Result of a case. */
export interface CaseResult {
  readonly case: ReadyCase
  /** Undefined if no role is chosen. */
  readonly decision: Decision | undefined
  /** Decision of the route's rules; undefined without a request or an applicable rule. */
  readonly rules: RuleDecision | undefined
  /** Empty if the case passed. */
  readonly mismatches: readonly Mismatch[]
  /** Reasons to reject the caller before a role is chosen. Not evaluated. */
  readonly notes: readonly string[]
  readonly durationMs: number
}

/** Decides as the proxy does, and compares. Throws `config_error` for an invalid matcher. */
export function evaluate(each: ReadyCase, now: () => MonotonicMs, wallClock: () => EpochMs): CaseResult {
  const startedAt = now()
  const { auth, onMatcherError, caller, route, request } = each
  const options = { all: false }
  const rules = route && request && decideRules(route, request, caller.claims, options)
  const decision =
    auth &&
    decideFor(auth, onMatcherError, caller, {
      all: false,
      request: route && request && { mcp: request.mcp, route: route.name },
    })
  return {
    case: each,
    decision,
    rules,
    mismatches: mismatchesOf(each, decision, rules),
    notes: each.route === undefined ? [] : notesOn(each.route, each.caller, wallClock()),
    durationMs: Math.max(0, now() - startedAt),
  }
}

function mismatchesOf(
  { expect }: ReadyCase,
  decision: Decision | undefined,
  rules: RuleDecision | undefined,
): Mismatch[] {
  const isAllowed = rules?.allowed !== false
  const actual = {
    // A request that is not allowed gets no credential.
    role: decision === undefined || !isAllowed ? 'none' : roleOf(decision),
    reason: decision?.refusal ?? 'none',
    sessionName: decision === undefined ? 'none' : nameOf(decision),
    allowed: String(isAllowed),
    rule: rules?.rule ?? 'default',
  }
  return (['role', 'reason', 'sessionName', 'allowed', 'rule'] as const).flatMap((what) => {
    const expected = expect[what]?.toString()
    return expected === undefined || expected === actual[what] ? [] : [{ what, expected, actual: actual[what] }]
  })
}

/** The role that the caller gets: `none` if the request is rejected otherwise. */
export const roleOf = ({
  choice,
  refusal,
}: Pick<Decision, 'refusal'> & { choice: { roleArn?: string | undefined } }) =>
  refusal === undefined ? (choice.roleArn ?? 'none') : 'none'

const nameOf = ({ session, refusal }: Decision): string =>
  refusal === undefined && session !== undefined ? session.name : 'none'
