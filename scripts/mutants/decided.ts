import type { Mutation } from './mutation.ts'

/** What `extauth explain` and `extauth test` read and judge. */
export const DECIDED: readonly Mutation[] = [
  {
    rule: 'of a caller on a route the newest request counts',
    file: 'src/examine/explain/decisions-file.ts',
    find: '(a, b) => a.atMs - b.atMs',
    replace: '(a, b) => b.atMs - a.atMs',
    tests: ['test/system/examine/role-tests/decisions.test.ts'],
  },
  {
    rule: 'what tells two tokens of a caller apart is no other caller',
    file: 'src/examine/explain/decisions-file.ts',
    find: '.filter(([name]) => !VOLATILE.has(name))',
    replace: '',
    tests: ['test/system/examine/role-tests/decisions.test.ts'],
  },
  {
    rule: 'records without claims are counted',
    file: 'src/examine/explain/decisions-file.ts',
    find: 'if (written === undefined) withoutClaims += 1',
    replace: 'if (written === undefined) withoutClaims += 0',
    tests: ['test/system/examine/role-tests/decisions.test.ts'],
  },
  {
    rule: 'a session name that hangs on the token is not made again',
    file: 'src/examine/explain/decisions-file.ts',
    find: 'decision.session?.changes.length === 0 ||',
    replace: 'decision.session !== undefined ||',
    tests: ['test/system/examine/role-tests/decisions.test.ts'],
  },
  {
    rule: 'a case that does not get its role has failed',
    file: 'src/examine/role-tests/run.ts',
    find: 'mismatches.length > 0).length',
    replace: 'mismatches.length > 1).length',
    tests: ['test/unit/examine/role-tests/cases.test.ts'],
  },
  {
    rule: 'a mapping that no case reached is told',
    file: 'src/examine/role-tests/reach.ts',
    find: '.filter(({ config, mapping }) => !taken.has(keyOf(config, mapping)))',
    replace: '',
    tests: ['test/unit/examine/role-tests/cases.test.ts'],
  },
  {
    rule: 'a case is of a config of its own namespace',
    file: 'src/examine/role-tests/cases.ts',
    find: 'metadata.name === config && metadata.namespace === namespace,',
    replace: 'metadata.name === config,',
    tests: ['test/unit/examine/role-tests/cases.test.ts'],
  },
  {
    rule: 'a case that can not be run is told',
    file: 'src/examine/role-tests/cases.ts',
    find: "        problems.push(located.problem([...at, each.route === undefined ? 'config' : 'route'], subject.message))\n",
    replace: '',
    tests: ['test/unit/examine/role-tests/cases.test.ts'],
  },
  {
    rule: 'names in a report are no XML',
    file: 'src/examine/role-tests/junit.ts',
    find: '.replace(/[&<>"]/g, (character) => ESCAPES[character] ?? character)',
    replace: '',
    tests: ['test/unit/examine/role-tests/reports.test.ts'],
  },
  {
    rule: 'what no XML may hold is not in a report',
    file: 'src/examine/role-tests/junit.ts',
    find: "text.replace(NOT_XML, '\\uFFFD')",
    replace: 'text',
    tests: ['test/unit/examine/role-tests/reports.test.ts'],
  },
  {
    rule: 'a case that failed is a failure in a report',
    file: 'src/examine/role-tests/junit.ts',
    find: 'failures: run.failed + missed',
    replace: 'failures: missed',
    tests: ['test/unit/examine/role-tests/reports.test.ts'],
  },
]
