import { describe, expect, test } from 'vitest'
import { compileMatcher, MATCHER_LIMITS, MatcherError } from '../../../src/cel/index.ts'
import type { Claims } from '../../../src/core/index.ts'
import { claimsOf } from '../../support/cel/support/claims.ts'

const list = (length: number) => Array.from({ length }, (_, index) => `g${index}`)
const withGroups = (length: number, more: object = {}): Claims =>
  claimsOf(JSON.stringify({ groups: list(length), ...more }))
const evaluate = (expression: string, claims: Claims) => compileMatcher(expression).evaluate(claims)

describe('size and depth are bounded before anything recurses', () => {
  test.each([
    ['10,001 bytes', `claims.a == "${'x'.repeat(10_001 - 'claims.a == ""'.length)}"`],
    ['20,000 parentheses', `${'('.repeat(20_000)}true${')'.repeat(20_000)}`],
    ['1,000 parentheses', `${'('.repeat(1_000)}true${')'.repeat(1_000)}`],
    ['2,000 unclosed brackets', '['.repeat(2_000)],
    ['1,000 indices', `${'claims['.repeat(1_000)}1${']'.repeat(1_000)} == 1`],
    ['1,000 maps', `${'{1:'.repeat(1_000)}1${'}'.repeat(1_000)} == {}`],
    ['1,000 calls', `${'size('.repeat(1_000)}claims${')'.repeat(1_000)} == 1`],
    ['2,400 conditionals', `${'true?true:'.repeat(900)}true`],
    ['1,000 sums', `${'1+'.repeat(1_000)}1 == 1`],
    ['1,000 selections', `claims${'.a'.repeat(1_000)} == 1`],
    [
      '257 literal elements',
      `claims.a in [${list(257)
        .map((name) => `"${name}"`)
        .join(',')}]`,
    ],
    [
      '257 literal entries',
      `{${list(257)
        .map((name) => `"${name}":1`)
        .join(',')}} == claims`,
    ],
    ['three macros inside each other', 'claims.a.all(x, x.all(y, y.all(z, z == 1)))'],
    ['brackets behind a string that ends in a backslash', `"\\\\" == "" && ${'('.repeat(300)}true${')'.repeat(300)}`],
  ])('%s', (_what, expression) => {
    expect(() => compileMatcher(expression)).toThrow(MatcherError)
  })

  test.each([
    [
      'brackets in strings and comments do not count',
      `"${'('.repeat(500)}" == r'''${'['.repeat(500)}''' // ${'{'.repeat(500)}`,
    ],
    ['exactly 10,000 bytes', `claims.a == "${'x'.repeat(10_000 - 'claims.a == ""'.length)}"`],
    [
      '256 literal elements',
      `"g1" in [${list(256)
        .map((name) => `"${name}"`)
        .join(',')}]`,
    ],
    ['two macros inside each other', 'claims.a.all(x, x.all(y, y == 1))'],
    ['macros one after the other', 'claims.a.filter(x, x > 1).map(x, x).map(x, x).exists(x, x == 1)'],
    ['9,000 negations', `${'!'.repeat(9_000)}claims.a`],
    ['3,000 alternatives', `claims.a${'||true'.repeat(1_500)}`],
  ])('%s', (_what, expression) => {
    expect(compileMatcher(expression).expression).toBe(expression)
  })
})

describe('an evaluation ends in the limit, counted in steps', () => {
  test('a macro may visit exactly 10,000 elements', () => {
    expect(MATCHER_LIMITS.steps).toBe(10_000)
    expect(evaluate('claims.groups.all(g, g != "")', withGroups(10_000))).toEqual({ outcome: 'matched' })
    expect(evaluate('claims.groups.all(g, g != "")', withGroups(10_001))).toEqual({ outcome: 'limit' })
  })

  test('two macros multiply: 100 × 99 + 100 fits, 100 × 100 + 100 does not', () => {
    const expression = 'claims.groups.all(g, claims.others.all(o, o != g))'
    expect(evaluate(expression, withGroups(100, { others: list(99).map((name) => `o${name}`) }))).toEqual({
      outcome: 'matched',
    })
    expect(evaluate(expression, withGroups(100, { others: list(100).map((name) => `o${name}`) }))).toEqual({
      outcome: 'limit',
    })
  })

  test('a large body costs more per element', () => {
    const body = Array.from({ length: 60 }, (_, index) => `g != "x${index}"`).join(' && ')
    expect(evaluate(`claims.groups.all(g, ${body})`, withGroups(2_000))).toEqual({ outcome: 'matched' })
    expect(evaluate(`claims.groups.all(g, ${body})`, withGroups(3_000))).toEqual({ outcome: 'limit' })
  })

  test.each([
    ['absorbed by ||', 'claims.groups.all(g, claims.groups.all(h, h != "")) || true'],
    ['absorbed by &&', '!(claims.groups.all(g, claims.groups.all(h, h != "")) && false)'],
    ['absorbed in a macro', 'claims.groups.exists(g, claims.groups.exists(h, h == "") || g == "g999")'],
    ['in a conditional', 'claims.groups.all(g, claims.groups.all(h, true)) ? true : true'],
    ['in a list', 'size([claims.groups.all(g, claims.groups.all(h, true))]) > 0'],
    ['membership', 'claims.groups.all(g, "nobody" in claims.groups || true)'],
    ['equality of lists', 'claims.groups.all(g, claims.groups == claims.groups)'],
    ['concatenation', 'claims.groups.all(g, size(claims.groups + claims.groups) > 0)'],
    ['map of map', 'claims.groups.map(g, claims.groups.map(h, h)).size() > 0'],
    [
      'a map',
      'claims.all(k, claims.groups.all(g, claims.groups.all(h, true)) || true)'.replace(
        'claims.groups.all(h, true)',
        'g in claims.groups',
      ),
    ],
  ])('%s', (_what, expression) => {
    expect(evaluate(expression, withGroups(1_000))).toEqual({ outcome: 'limit' })
  })

  test('values that double with each macro', () => {
    const doubling = (body: string, times: number) => `[claims.text]${`.map(x, ${body})`.repeat(times)}`
    const claims = claimsOf(JSON.stringify({ text: 'x'.repeat(1_000) }))
    expect(evaluate(`size(${doubling('x + x', 60)}) == 1`, claims)).toEqual({ outcome: 'limit' })
    expect(evaluate(`${doubling('[x, x]', 40)} == ${doubling('[x, x]', 40)}`, claims)).toEqual({ outcome: 'limit' })
  })

  test('nesting in claims is compared to a bound', () => {
    const deep = claimsOf(
      `{"a": ${'['.repeat(2_000)}${']'.repeat(2_000)}, "b": ${'['.repeat(2_000)}${']'.repeat(2_000)}}`,
    )
    expect(evaluate('claims.a == claims.b', deep)).toEqual({ outcome: 'limit' })
  })
})

describe('regular expressions', () => {
  const text = claimsOf(
    JSON.stringify({ text: 'x'.repeat(16_000), pattern: '(x|y{100}){9}', wide: '[\\p{L}\\p{N}]{900}' }),
  )

  test.each(['^(x+x+)+y$', '^(x*)*y$', '(x|x|x)*y', '^(.*)(.*)(.*)z$'])('%s does not backtrack', (pattern) => {
    expect(evaluate(`claims.text.matches("${pattern}")`, text)).toEqual({ outcome: 'not_matched' })
  })

  test.each([
    ['large pattern over a long text', 'claims.text.matches("(.|a|b)*z.{900}")'],
    ['a claim as pattern', 'claims.text.matches(claims.pattern) || true'],
    ['a claim as wide pattern', '"a".matches(claims.wide) || true'],
    ['in a macro', '[1,2,3,4,5,6,7,8,9].all(i, [1,2,3,4,5,6,7,8,9].all(j, claims.text.matches("(x{9}){9}y") || true))'],
  ])('%s ends in the limit', (_what, expression) => {
    expect(evaluate(expression, text)).toEqual({ outcome: 'limit' })
  })

  test('many short texts are fine', () => {
    const groups = withGroups(2_000)
    expect(evaluate('claims.groups.exists(g, g.matches("^g1999$"))', groups)).toEqual({ outcome: 'matched' })
  })
})

describe('names of JavaScript mean nothing', () => {
  const claims = claimsOf('{"__proto__": {"admin": true}, "constructor": "c", "hasOwnProperty": 1, "groups": ["a"]}')
  const empty = claimsOf('{"groups": ["a"], "o": {}}')

  test.each(['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty', 'valueOf', '__defineGetter__'])(
    '%s is no claim unless it is one',
    (name) => {
      expect(evaluate(`has(claims.${name})`, empty)).toEqual({ outcome: 'not_matched' })
      expect(evaluate(`"${name}" in claims`, empty)).toEqual({ outcome: 'not_matched' })
      expect(evaluate(`has(claims.o.${name}) || has(claims.groups.${name})`, empty)).toEqual({ outcome: 'not_matched' })
      expect(evaluate(`claims["${name}"] != null`, empty)).toMatchObject({ outcome: 'error', missingKey: name })
    },
  )

  test('a claim that has such a name is read like any other', () => {
    expect(evaluate('claims.__proto__.admin == true', claims)).toEqual({ outcome: 'matched' })
    expect(evaluate('claims.constructor == "c" && claims.hasOwnProperty == 1', claims)).toEqual({ outcome: 'matched' })
    expect(evaluate('has(claims.admin)', claims)).toEqual({ outcome: 'not_matched' })
  })

  test('list properties are no members', () => {
    expect(evaluate('claims.groups.length == 1', claims)).toMatchObject({ outcome: 'error' })
    expect(evaluate('claims.groups["length"] == 1', claims)).toMatchObject({ outcome: 'error' })
  })
})

describe('nothing stays behind', () => {
  test('after the limit the same matcher evaluates as before', () => {
    const matcher = compileMatcher('claims.groups.exists(g, claims.groups.exists(h, h + g == "g1g0"))')
    const small = withGroups(3)
    expect(matcher.evaluate(small)).toEqual({ outcome: 'matched' })
    for (let round = 0; round < 50; round++) expect(matcher.evaluate(withGroups(5_001))).toEqual({ outcome: 'limit' })
    expect(matcher.evaluate(small)).toEqual({ outcome: 'matched' })
  })

  test('an error in one matcher does not reach another', () => {
    const failing = compileMatcher('claims.missing.exists(g, g == "a")')
    const fine = compileMatcher('claims.groups.exists(g, g == "g0")')
    for (let round = 0; round < 10; round++) {
      expect(failing.evaluate(withGroups(2)).outcome).toBe('error')
      expect(fine.evaluate(withGroups(2)).outcome).toBe('matched')
    }
  })

  test('claims are not changed', () => {
    const claims = withGroups(3)
    const before = JSON.stringify(claims)
    evaluate('(claims.groups + ["x"]).map(g, g + "y").size() == 4', claims)
    expect(JSON.stringify(claims)).toBe(before)
  })
})
