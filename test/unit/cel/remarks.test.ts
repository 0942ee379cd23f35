import { expect, test } from 'vitest'
import { compileMatcher, remarksOnMatcher } from '../../../src/cel/index.ts'

test.each([
  ['claims.groups == "dev"', 15, 'write "dev" in claims.groups'],
  ['"dev" != claims.groups', 7, 'write !("dev" in claims.groups)'],
  ['claims.realm_access.roles == "admin"', 27, 'write "admin" in claims.realm_access.roles'],
  ['claims["cognito:groups"] == "dev"', 26, 'write "dev" in claims["cognito:groups"]'],
  ['claims.groups.contains("dev")', 14, 'write "dev" in claims.groups'],
  ['claims.groups.startsWith("team-")', 14, 'write claims.groups.exists(x, x.startsWith("team-"))'],
  ['claims.level % 2 == 0', 14, 'write int(claims.level)'],
  ['claims.level / 2 == 3', 14, 'write int(claims.level), or the other number with a point'],
  ['claims.level + 1 > 3', 14, 'write int(claims.level), or the other number with a point'],
  ['claims.name.charAt(claims.at) == "x"', 12, 'write int(claims.at)'],
  ['timestamp(claims.exp) > timestamp("2026-01-01T00:00:00Z")', 1, 'write int(claims.exp)'],
  ['math.bitAnd(claims.flags, 1) == 1', 1, 'write int(claims.flags)'],
  ['claims.list.exists(x, claims.level % 2 == 0)', 36, 'write int(claims.level)'],
])('%s is remarked on', (expression, column, wanted) => {
  compileMatcher(expression)
  const remarks = remarksOnMatcher(expression)
  expect(remarks).toHaveLength(1)
  expect(remarks[0]?.position).toEqual({ line: 1, column })
  expect(remarks[0]?.message).toContain(wanted)
})

test.each([
  '"dev" in claims.groups',
  'claims.groups == ["dev"]',
  'claims.group == "dev"',
  'claims.level == 3',
  'claims.level >= 3 && 2 < claims.level',
  'int(claims.level) % 2 == 0',
  'claims.level + 1.0 > 3.0',
  'claims.level / claims.ratio > 1.0',
  'timestamp(int(claims.exp)) > timestamp("2026-01-01T00:00:00Z")',
  'timestamp(claims.since) > timestamp("2026-01-01T00:00:00Z")',
  'claims.name + "x" == "ax"',
  'claims.numbers[claims.at] == 1',
  'claims.groups.exists(g, g == "dev" && g.startsWith("d"))',
  'claims.email.split("@")[0].charAt(0) == "a"',
  'size(claims.groups) % 2 == 0',
  '-claims.level < 0',
])('%s is not', (expression) => {
  expect(remarksOnMatcher(expression)).toEqual([])
})
