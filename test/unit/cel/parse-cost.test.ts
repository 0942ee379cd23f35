import { describe, expect, test } from 'vitest'
import { compileMatcher, MATCHER_LIMITS, MatcherError } from '../../../src/cel/index.ts'
import { tokensOf } from '../../../src/cel/tokens.ts'
import { claimsOf } from '../../support/cel/support/claims.ts'

const LENGTH = MATCHER_LIMITS.bytes - 4
const fill = (before: string, part: string, after = '') =>
  before + part.repeat(Math.floor((LENGTH - before.length - after.length) / Buffer.byteLength(part))) + after

const SHAPES: Readonly<Record<string, string>> = {
  'spaces at the end': fill('true', ' '),
  'tabs at the end': fill('true', '\t'),
  'lines at the end': fill('true', '\n'),
  'carriage returns at the end': fill('true', '\r'),
  'form feeds at the end': fill('true', '\f'),
  'spaces before an error': fill('true', ' ', '='),
  'spaces after each operator': fill('true', ' || '.replaceAll(' ', ' '.repeat(50)) + 'true'),
  'spaces in brackets': fill('claims.groups[', ' ', '0] == 1'),
  'spaces in a call': fill('claims.a.startsWith(', ' ', '"a")'),
  'spaces before a selection': fill('claims', ' ', '.a'),
  'spaces in a map': fill('{"a"', ' ', ': 1} == claims'),
  'a comment': fill('true // ', 'x'),
  slashes: fill('true ', '/'),
  'comments at the end': fill('true', ' // x\n'),
  'comments in between': fill('', '//\n', 'true'),
  'an open text': fill('"', 'a'),
  'an open long text': fill('"""', 'a'),
  'an open long text of escaped quotes': fill('"""', '\\"'),
  quotes: fill('', '"'),
  'single quotes': fill('', "'"),
  'both quotes': fill('', `'''"""`),
  'raw quotes': fill('', 'r"'),
  backslashes: fill('"', '\\'),
  escapes: fill('"', '\\u0041', '" == claims.a'),
  'back quotes': fill('claims', '.`a'),
  'an open name in back quotes': fill('claims.`', 'a'),
  digits: fill('', '1', ' == 1'),
  dots: fill('', '1.'),
  exponents: fill('', '1e'),
  'hexadecimal digits': fill('0x', 'f', ' == 1'),
  'a name': fill('', 'a'),
  words: fill('', 'in '),
  signs: fill('', '-', 'claims.a'),
  negations: fill('', '!', 'claims.a'),
  selections: fill('claims', '.a', ' == 1'),
  indices: fill('claims', '[0]', ' == 1'),
  calls: fill('claims', '.size()', ' == 1'),
  sums: fill('', '1+', '1 == 1'),
  alternatives: fill('', 'claims.a||', 'true'),
  'an error after alternatives': fill('', 'claims.a == "x" || ', 'claims.b = 1'),
  'brackets that stay open': fill('', '('),
  conditionals: fill('', 'true?true:', 'true'),
  macros: fill('claims.a', '.map(x, x)', ' == 1'),
  'names for values': fill('', 'cel.bind(a, 1, '),
  'optional selections': fill('claims', '.?a', '.hasValue()'),
  'a pattern of open repetitions': fill('"a".matches("', 'a{1', '")'),
  'a pattern of repetitions': fill('"a".matches("', 'a{99}', '")'),
  'a pattern of open classes': fill('"a".matches("', '[', '")'),
  'a pattern of open groups': fill('"a".matches("', '(', '")'),
}

const ORDINARY = fill('', 'claims.groups.exists(g, g == "dev") || ', 'true')

function compile(text: string): void {
  try {
    compileMatcher(text)
  } catch (error) {
    if (!(error instanceof MatcherError)) throw error
  }
}

/** Milliseconds of CPU, of the quickest of some runs: others may use the machine as well. */
function cost(text: string, runs: number): number {
  let least = Infinity
  for (let run = 0; run < runs; run++) {
    const before = process.cpuUsage()
    compile(text)
    const { user, system } = process.cpuUsage(before)
    least = Math.min(least, (user + system) / 1000)
  }
  return least
}

describe('a text of the longest size costs what ordinary text of that size costs, whatever it is', () => {
  const ordinary = cost(ORDINARY, 20)

  test.each(Object.entries(SHAPES))('%s', (_name, text) => {
    expect(text.length).toBeGreaterThan(LENGTH - 250)
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(MATCHER_LIMITS.bytes)
    // Quadratic cost was 70 to 200 times this.
    expect(cost(text, 6)).toBeLessThan(25 * Math.max(ordinary, 1))
  })
})

describe('the words of a text', () => {
  test.each(Object.entries(SHAPES))('cover it once: %s', (_name, text) => {
    let end = 0
    for (const token of tokensOf(text)) {
      expect(token.start).toBeGreaterThanOrEqual(end)
      end = token.end
    }
  })
})

test('a pattern in a claim is paid for before anything reads it', () => {
  const matcher = compileMatcher('"a".matches(claims.pattern) || true')
  const claims = claimsOf(JSON.stringify({ pattern: '['.repeat(1_000_000) }))
  expect(matcher.evaluate(claims)).toEqual({ outcome: 'limit' })
})

test('the patterns of one matcher are bounded together', () => {
  const half = 'a{80}'.repeat(60)
  expect(() => compileMatcher(`claims.a.matches("${half}")`)).not.toThrow()
  expect(() => compileMatcher(`claims.a.matches("${half}") || claims.b.matches("b${half}")`)).toThrow(
    /repeats too much/,
  )
})
