import type { Decision } from '../../obtain/cloud-sts/index.ts'
import { decideFor, notesOn } from '../explain/explain-report.ts'
import type { ReadyCase } from './cases.ts'

/** One expectation that was not met. */
export interface Mismatch {
  readonly what: 'role' | 'reason' | 'sessionName'
  readonly expected: string
  readonly actual: string
}

/** A case that was run. */
export interface CaseResult {
  readonly case: ReadyCase
  readonly decision: Decision
  /** Empty when the case passed. */
  readonly mismatches: readonly Mismatch[]
  /** What would stop the caller before a role is chosen; not judged. */
  readonly notes: readonly string[]
  readonly durationMs: number
}

/** Decides as the proxy would, and compares. Throws `config_error` for a matcher that does not compile. */
export function judge(each: ReadyCase, now: () => number, wallClock: () => number): CaseResult {
  const startedAt = now()
  const decision = decideFor(each.auth, each.onMatcherError, each.caller, { all: false })
  return {
    case: each,
    decision,
    mismatches: mismatchesOf(each, decision),
    notes: each.route === undefined ? [] : notesOn(each.route, each.caller, wallClock()),
    durationMs: Math.max(0, now() - startedAt),
  }
}

function mismatchesOf({ expect }: ReadyCase, decision: Decision): Mismatch[] {
  const actual = { role: roleOf(decision), reason: decision.refusal ?? 'none', sessionName: nameOf(decision) }
  return (['role', 'reason', 'sessionName'] as const).flatMap((what) => {
    const expected = expect[what]
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
