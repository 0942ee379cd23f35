import { expect, test } from 'vitest'
import { compileMatcher, MatcherError } from '../../../src/cel/index.ts'

test.each([
  ['claims.a = 1', 10, /found =.*write ==/],
  ['claims.a === 1', 12, /write ==/],
  ['claims.a == 1 and claims.b == 2', 15, /found and.*write &&/],
  ['claims.a == 1 or claims.b == 2', 15, /write \|\|/],
  ['not claims.a', 5, /write !/],
  ['claims.groups.exists(g -> g == "dev")', 25, /exists\(g, g == "dev"\)/],
  ['has(claims["a"])', 1, /write "name" in claims/],
  ['claims.a <> 1', 11, /write !=/],
  ['claims.a == “x”', 13, /straight quotes/],
  ['claims.a == 1 &', 15, /write &&/],
  ['claims.a.toLowerCase() == "x"', 9, /text\.lowerAscii\(\)/],
  ['claims.groups.includes("dev")', 14, /value in list/],
  ['claims.a == True', 13, /write true/],
  ['claims.a == "x" && (claims.b == "y"', 36, /the end of input/],
])('%s says what was probably meant, at the furthest word', (expression, column, message) => {
  try {
    compileMatcher(expression)
    expect.fail('it compiles')
  } catch (error) {
    if (!(error instanceof MatcherError)) throw error
    expect([error.line, error.column]).toEqual([1, column])
    expect(error.message).toMatch(message)
  }
})
