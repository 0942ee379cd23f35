import { describe, expect, test } from 'vitest'
import { compileMatcher, MatcherError } from '../../../src/cel/index.ts'
import { claimsOf } from '../../support/cel/support/claims.ts'

const CLAIMS = claimsOf('{"sub": "ada", "groups": ["a"], "nested": {"b": 1}, "secret": "do-not-repeat", "n": 1.5}')
const evaluate = (expression: string) => compileMatcher(expression).evaluate(CLAIMS)

function refusal(expression: string): { message: string; line: number; column: number } {
  try {
    compileMatcher(expression)
  } catch (error) {
    if (error instanceof MatcherError) return { message: error.message, line: error.line, column: error.column }
    throw error
  }
  throw new Error(`${expression} compiles`)
}

describe('an evaluation that fails says where and which key', () => {
  test.each([
    ['claims.dept == "x"', 1, 7, 'dept'],
    ['claims["dept"] == "x"', 1, 7, 'dept'],
    ['claims.nested.c == 1', 1, 14, 'c'],
    ['claims.nested["c"] == 1', 1, 14, 'c'],
    ['claims.groups[3] == "a"', 1, 14, '3'],
    ['claims.sub == "ada"\n  && claims.dept == "x"', 2, 12, 'dept'],
    ['/* é */'.length > 0 ? '"😀" == claims.dept' : '', 1, 14, 'dept'],
  ])('%s', (expression, line, column, missingKey) => {
    expect(evaluate(expression)).toEqual({
      outcome: 'error',
      position: { line, column },
      reason: 'there is no such key',
      missingKey,
    })
  })

  test.each([
    'claims.sub > 1',
    'claims.sub + 1 == "ada1"',
    'claims.groups["0"] == "a"',
    'claims.groups[claims.n] == "a"',
    'claims.sub.exists(x, true)',
    'int(claims.secret) == 1',
    'int("") == 0',
    'double("") == 0.0',
    'double("0x10") == 16.0',
    'timestamp(claims.secret) > timestamp(0)',
    'claims.sub.matches(claims.groups[0] + "(")',
    'claims.n',
    'claims.sub',
    '!claims.sub',
    'claims.sub ? true : false',
  ])('%s has the wrong type or value, and no value of a claim is repeated', (expression) => {
    const result = evaluate(expression)
    expect(result).toMatchObject({ outcome: 'error', missingKey: undefined })
    expect(JSON.stringify(result)).not.toMatch(/do-not-repeat|ada/)
  })

  test('a character of two code units is quoted whole', () => {
    expect(refusal('true 😀').message).toContain('found 😀')
  })

  test('a key that a claim spells is not repeated', () => {
    expect(evaluate('claims[claims.secret] == 1')).toMatchObject({ outcome: 'error', missingKey: undefined })
  })

  test.each([
    ['claims.dept == "x" || claims.sub == "ada"', 'matched'],
    ['claims.sub == "ada" || claims.dept == "x"', 'matched'],
    ['claims.dept == "x" && claims.sub == "bob"', 'not_matched'],
    ['claims.groups.exists(g, g > 1 || g == "a")', 'matched'],
    ['claims.dept == "x" || claims.sub == "bob"', 'error'],
    ['claims.sub == "ada" && claims.dept == "x"', 'error'],
  ])('|| and && absorb errors: %s', (expression, outcome) => {
    expect(evaluate(expression).outcome).toBe(outcome)
  })
})

describe('what can never be evaluated is refused at load', () => {
  test.each([
    ['', 1, 1, /end of input/],
    ['claims.a == ', 1, 13, /found the end of input, but expected a value/],
    ['claims.a ==\n  foo', 2, 3, /unknown variable "foo"/],
    ['claim.a == 1', 1, 1, /unknown variable "claim"/],
    ['claims.groups.exists(g, h == "a")', 1, 25, /unknown variable "h"/],
    ['process.env == {}', 1, 1, /unknown variable "process"/],
    ['constructor == 1', 1, 1, /unknown variable "constructor"/],
    ['lower(claims.a) == "x"', 1, 1, /unknown function "lower" with 1 argument/],
    ['claims.a.lowerCase() == "x"', 1, 9, /unknown method "lowerCase" with 0 arguments/],
    ['claims.a.startsWith() == true', 1, 9, /unknown method "startsWith" with 0 arguments/],
    ['claims.a.exists("g", true)', 1, 9, /unknown method "exists"/],
    ['claims.a.contians("x")', 1, 9, /unknown method "contians" with 1 argument; write .*text\.contains\("part"\)/],
    ['claims.a.nonsense("x")', 1, 9, /unknown method "nonsense" with 1 argument$/],
    ['matches(claims.a, "x")', 1, 1, /unknown function "matches"/],
    ['claims.a.matches("(")', 1, 18, /not a regular expression: missing closing \)/],
    ['claims.a.matches("(a{1000}){1000}")', 1, 18, /not a regular expression: it repeats too much/],
    ['"a"', 1, 1, /must be a bool, but this is always string/],
    ['1 + 1', 1, 1, /must be a bool/],
    ['[true]', 1, 1, /always list/],
    ['claims', 1, 1, /always map/],
    ['claims.a.size()', 1, 1, /always int/],
    ['claims.groups.map(g, g)', 1, 1, /always list/],
    ['claims.a ? "x" : 1', 1, 1, /always string or int/],
    ['google.protobuf.Any{} == null', 1, 16, /unknown type/],
    ['9223372036854775808 == 1', 1, 1, /64 bits/],
    ['18446744073709551616u == 1u', 1, 1, /64 bits/],
  ])('%j', (expression, line, column, message) => {
    const refused = refusal(expression)
    expect(refused).toEqual({ message: expect.stringMatching(message) as string, line, column })
  })

  test.each(['claims.a', 'claims.a ? claims.b : true', 'has(claims.a)', 'dyn(true)', '-9223372036854775808 < 0'])(
    'what may be a bool is taken: %s',
    (expression) => {
      expect(compileMatcher(expression).expression).toBe(expression)
    },
  )
})
