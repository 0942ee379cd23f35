import type { Mutation } from './mutation.ts'

/** What `extauth test` and `extauth check` find, and what traces say. */
export const VERDICTS: readonly Mutation[] = [
  {
    rule: 'a case passes where all that it expects came',
    file: 'src/commands/role-tests/judge.ts',
    find: 'return expected === undefined || expected === actual[what] ? [] :',
    replace: 'return expected !== undefined || expected === actual[what] ? [] :',
    tests: ['test/commands/role-tests', 'test/commands/explain-input.test.ts'],
  },
  {
    rule: 'a role that something else refuses is none',
    file: 'src/commands/role-tests/judge.ts',
    find: "refusal === undefined ? (choice.roleArn ?? 'none') : 'none'",
    replace: "(choice.roleArn ?? 'none')",
    tests: ['test/commands/role-tests', 'test/commands/explain-input.test.ts'],
  },
  {
    rule: 'a session name is judged too',
    file: 'src/commands/role-tests/judge.ts',
    find: "(['role', 'reason', 'sessionName'] as const)",
    replace: "(['role', 'reason'] as const)",
    tests: ['test/commands/role-tests', 'test/commands/explain-input.test.ts'],
  },
  {
    rule: 'a reason is judged too',
    file: 'src/commands/role-tests/judge.ts',
    find: "(['role', 'reason', 'sessionName'] as const)",
    replace: "(['role', 'sessionName'] as const)",
    tests: ['test/commands/role-tests', 'test/commands/explain-input.test.ts'],
  },
  {
    rule: 'a refused caller has no session name',
    file: 'src/commands/role-tests/judge.ts',
    find: "refusal === undefined && session !== undefined ? session.name : 'none'",
    replace: "session !== undefined ? session.name : 'none'",
    tests: ['test/commands/role-tests', 'test/commands/explain-input.test.ts'],
  },
  {
    rule: 'what would stop a caller before is noted',
    file: 'src/commands/role-tests/judge.ts',
    find: 'notes: each.route === undefined ? [] : notesOn(each.route, each.caller, wallClock())',
    replace: 'notes: []',
    tests: ['test/commands/role-tests', 'test/commands/explain-input.test.ts'],
  },
  {
    rule: 'a case is judged with the rule of its route for matchers that fail',
    file: 'src/commands/role-tests/judge.ts',
    find: 'decideFor(each.auth, each.onMatcherError, each.caller',
    replace: "decideFor(each.auth, 'skip', each.caller",
    tests: ['test/commands/role-tests', 'test/commands/explain-input.test.ts'],
  },
  {
    rule: 'a case that failed is exit code 1',
    file: 'src/commands/role-tests/command.ts',
    find: 'return run.failed > 0 || isIncomplete ? EXIT.failed : EXIT.fine',
    replace: 'return isIncomplete ? EXIT.failed : EXIT.fine',
    tests: ['test/commands/role-tests', 'test/commands/explain-input.test.ts'],
  },
  {
    rule: 'a mapping that no case reaches fails where that is wanted',
    file: 'src/commands/role-tests/command.ts',
    find: 'return run.failed > 0 || isIncomplete ? EXIT.failed : EXIT.fine',
    replace: 'return run.failed > 0 ? EXIT.failed : EXIT.fine',
    tests: ['test/commands/role-tests', 'test/commands/explain-input.test.ts'],
  },
  {
    rule: 'files without a case are refused',
    file: 'src/commands/role-tests/command.ts',
    find: 'if (loaded.roleTests.length === 0) throw',
    replace: 'if (loaded.roleTests.length < 0) throw',
    tests: ['test/commands/role-tests', 'test/commands/explain-input.test.ts'],
  },
  {
    rule: 'files with problems run no case',
    file: 'src/commands/role-tests/command.ts',
    find: 'if (loaded.problems.length > 0) throw new ConfigError(loaded.problems.map(renderProblem))',
    replace: '',
    tests: ['test/commands/role-tests', 'test/commands/explain-input.test.ts'],
  },
  {
    rule: 'a case that cannot be run stops all',
    file: 'src/commands/role-tests/command.ts',
    find: 'if (problems.length > 0) throw new ConfigError(problems.map(renderProblem))\n  return runCases',
    replace: 'return runCases',
    tests: ['test/commands/role-tests', 'test/commands/explain-input.test.ts'],
  },
]
