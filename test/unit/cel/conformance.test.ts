import { describe, expect, test } from 'vitest'
import { MatcherError } from '../../../src/cel/index.ts'
import { compileExpression } from '../../../src/cel/matcher.ts'
import { coreCases, type ConformanceCase } from '../../support/cel/support/conformance.ts'
import { EXCLUDED } from '../../support/cel/support/excluded.ts'

const { cases, unusable } = coreCases()
const excluded = new Set(Object.values(EXCLUDED).flat())

/** How an evaluation ends; `refused` when it does not compile. */
function outcome({ bindings, expected }: ConformanceCase, text: string): string {
  try {
    const evaluate = compileExpression(text, [...Object.keys(bindings), 'expected'])
    return evaluate({ ...bindings, ...(expected === undefined ? {} : { expected: expected.value }) }).outcome
  } catch (error) {
    if (error instanceof MatcherError) return 'refused'
    throw error
  }
}

function verdict(one: ConformanceCase): string {
  const { expression } = one
  if (one.expected === undefined) {
    const ended = outcome(one, `[${expression}] == []`)
    return ended === 'error' || ended === 'refused' ? 'as expected' : ended
  }
  const value = outcome(one, `(${expression}) == expected`)
  // Numbers are equal across types, so the type is compared as well.
  const type = outcome(one, `type(${expression}) == type(expected)`)
  return value === 'matched' && type === 'matched' ? 'as expected' : `value ${value}, type ${type}`
}

describe('the conformance suite of CEL, core of the language', () => {
  const sections = Map.groupBy(
    cases.filter(({ id }) => !excluded.has(id)),
    ({ id }) => id.slice(0, id.lastIndexOf('/')),
  )

  test.each([...sections])('%s', (_section, inSection) => {
    const others = inSection
      .map((one) => `${one.id}: ${verdict(one)}`)
      .filter((line) => !line.endsWith(': as expected'))
    expect(others).toEqual([])
  })

  test('more than a thousand cases are run', () => {
    expect([...sections.values()].flat().length).toBeGreaterThan(1_000)
  })

  test('every excluded case exists and does not pass, so that the list can only shrink', () => {
    const byId = new Map(cases.map((one) => [one.id, one]))
    const passing = [...excluded].filter((id) => {
      const one = byId.get(id)
      return one === undefined ? !unusable.includes(id) : verdict(one) === 'as expected'
    })
    expect(passing).toEqual([])
    expect(unusable.filter((id) => !excluded.has(id))).toEqual([])
  })
})
