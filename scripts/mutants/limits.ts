import type { Mutation } from './mutation.ts'

const words = ['test/unit/core/limit.test.ts']
const route = ['test/system/e2e/limits-named.test.ts']

/** That a limit which ended something is named, and the right one: `core`, `net`, `examine`. */
export const LIMITS: readonly Mutation[] = [
  {
    rule: 'what is too much in one text of an object costs no reading of the texts after it',
    file: 'src/load/documents/config-map.ts',
    find: 'if (isNamed && isSpent(budget)) break',
    replace: '',
    tests: ['test/slow/load/documents/bombs.test.ts'],
  },
  {
    rule: 'what was reached is told with its amount and its place',
    file: 'src/core/limit.ts',
    find: 'const cause = `${told.cause}; the limit is ${amountOf(limit)} (${where})`',
    replace: 'const { cause } = told',
    tests: words,
  },
  {
    rule: 'who reaches a limit learns which setting raises it',
    file: 'src/core/limit.ts',
    find: 'if (setting === undefined || told.remedy.includes(setting.name)) return',
    replace: 'if (setting !== undefined || told.remedy.length > 0) return',
    tests: words,
  },
  {
    rule: 'a limit beneath an error is found',
    file: 'src/core/limit.ts',
    find: 'return isLimit(limit) ? limit : limitIn(cause)',
    replace: 'return isLimit(limit) ? limit : undefined',
    tests: words,
  },
  {
    rule: 'an amount has its unit',
    file: 'src/core/limit.ts',
    find: 'amount >= bytes && amount % bytes === 0',
    replace: 'amount >= bytes',
    tests: words,
  },
  {
    rule: 'the time for a connection is the one that is named',
    file: 'src/net/limits.ts',
    find: "return ofRoute(connect, 'timeouts.connect')",
    replace: "return ofRoute(firstByte, 'timeouts.firstByte')",
    tests: words,
  },
  {
    rule: 'the time for the first byte is the one that is named',
    file: 'src/net/limits.ts',
    find: "return ofRoute(firstByte, 'timeouts.firstByte')",
    replace: "return ofRoute(idle, 'timeouts.idle')",
    tests: route,
  },
  {
    rule: 'the silence within an answer is what is named',
    file: 'src/net/limits.ts',
    find: "return ofRoute(idle, 'timeouts.idle')",
    replace: "return ofRoute(firstByte, 'timeouts.firstByte')",
    tests: route,
  },
  {
    rule: 'a tunnel without a bound takes the time that it takes',
    file: 'src/net/egress.ts',
    find: 'timeoutMs === 0 ? undefined : setTimeout',
    replace: 'setTimeout',
    tests: ['test/unit/net/egress.test.ts'],
  },
  {
    rule: 'what `check` waits for is not told as a setting of a route',
    file: 'src/examine/check/target.ts',
    find: 'connect: timeouts.connect, firstByte',
    replace: 'connect: timeouts.connect || STEP_MS, firstByte',
    tests: ['test/unit/examine/check/late.test.ts'],
  },
]
