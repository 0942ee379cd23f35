import type { EpochMs, MonotonicMs } from '../../core/index.ts'
import type { CaseSources, ReadyCase } from './cases.ts'
import { type CaseResult, evaluate } from './evaluate.ts'
import { type Reach, reachOf } from './reach.ts'

export interface TestRun {
  readonly results: readonly CaseResult[]
  readonly passed: number
  readonly failed: number
  readonly reach: Reach
}

/**
 * Runs all cases. Pure, except for the clocks: `now` is monotonic, `wallClock` is the Unix time, both in milliseconds.
 */
export function runCases(
  cases: readonly ReadyCase[],
  { loaded, routes = [] }: CaseSources,
  now: () => MonotonicMs,
  wallClock: () => EpochMs,
): TestRun {
  const results = cases.map((each) => evaluate(each, now, wallClock))
  const failed = results.filter(({ mismatches }) => mismatches.length > 0).length
  return { results, passed: results.length - failed, failed, reach: reachOf(loaded, routes, results) }
}

/** The result as JSON. Of the claims, it contains only session names. */
export function runAsJson({ results, passed, failed, reach }: TestRun): object {
  return {
    passed,
    failed,
    cases: results.map(({ case: each, decision, rules, mismatches, notes, durationMs }) => ({
      file: each.file,
      line: each.line,
      suite: each.suite,
      name: each.name,
      ...(each.route === undefined ? { config: each.auth?.name } : { route: each.route.name }),
      passed: mismatches.length === 0,
      mismatches,
      decision,
      ...(each.request === undefined ? {} : { rules }),
      notes,
      durationMs,
    })),
    reached: reach.ways - reach.unreached.length,
    unreached: reach.unreached,
  }
}
