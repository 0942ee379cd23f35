import type { Decision } from '../../obtain/cloud-sts/index.ts'
import type { RuleDecision } from '../../core/index.ts'
import { decideFor, notesOn } from '../explain/explain-report.ts'
import { decideRules } from '../explain/request-rules.ts'
import type { ReadyCase } from './cases.ts'

/** One expectation that was not met. */
export interface Mismatch {
  readonly what: 'role' | 'reason' | 'sessionName' | 'allowed' | 'rule'
  readonly expected: string
  readonly actual: string
}

/** A case that was run. */
export interface CaseResult {
  readonly case: ReadyCase
  /** Undefined where no role is chosen. */
  readonly decision: Decision | undefined
  /** What the rules of the route decide; undefined without a request, or where no rule applies. */
  readonly rules: RuleDecision | undefined
  /** Empty when the case passed. */
  readonly mismatches: readonly Mismatch[]
  /** What would stop the caller before a role is chosen; not judged. */
  readonly notes: readonly string[]
  readonly durationMs: number
}

/** Decides as the proxy would, and compares. Throws `config_error` for a matcher that does not compile. */
export function judge(each: ReadyCase, now: () => number, wallClock: () => number): CaseResult {
  const startedAt = now()
  const { auth, onMatcherError, caller, route, request } = each
  const options = { all: false }
  const rules = route && request && decideRules(route, request, caller.claims, options)
  const decision = auth && decideFor(auth, onMatcherError, caller, options)
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

/** The role that the caller really gets: `none` when something else refuses it. */
export const roleOf = ({
  choice,
  refusal,
}: Pick<Decision, 'refusal'> & { choice: { roleArn?: string | undefined } }) =>
  refusal === undefined ? (choice.roleArn ?? 'none') : 'none'

const nameOf = ({ session, refusal }: Decision): string =>
  refusal === undefined && session !== undefined ? session.name : 'none'
