import type { CaseSources, ReadyCase } from './cases.ts'
import { type CaseResult, judge } from './judge.ts'
import { type Reach, reachOf } from './reach.ts'

/** What came of all cases. */
export interface TestRun {
  readonly results: readonly CaseResult[]
  readonly passed: number
  readonly failed: number
  readonly reach: Reach
}

/** Runs all cases; pure but for the clocks. `now` is monotonic and in milliseconds, `wallClock` since the epoch. */
export function runCases(
  cases: readonly ReadyCase[],
  { loaded, routes = [] }: CaseSources,
  now: () => number,
  wallClock: () => number,
): TestRun {
  const results = cases.map((each) => judge(each, now, wallClock))
  const failed = results.filter(({ mismatches }) => mismatches.length > 0).length
  return { results, passed: results.length - failed, failed, reach: reachOf(loaded, routes, results) }
}

/** The same as JSON: nothing of the claims but the session names. */
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
