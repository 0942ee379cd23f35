import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { compileMatcher, MATCHER_LIMITS, remarksOnMatcher } from '../../../src/cel/index.ts'
import { meteredEnvironment } from '../../../src/cel/functions.ts'

const page = readFileSync(new URL('../../../docs/role-rules.md', import.meta.url), 'utf8')
const rows = page.split('\n').flatMap((line) => (/^\| `(claims|timestamp)/.test(line) ? [line.split(/(?<!\\)\|/)] : []))

it('names every function that a matcher can call', () => {
  const names = new Set([...meteredEnvironment().env.funcs].map(({ name }) => name))
  const callable = [...names].filter((name) => /^[a-zA-Z]/.test(name))
  expect(callable.length).toBeGreaterThan(70)
  expect(callable.filter((name) => !page.includes(`${name}(`))).toEqual([])
})

it('has remedies that compile without a remark, for what is remarked on', () => {
  const warned = rows.filter(([, , what = '']) => what.includes('`validate` warns'))
  expect(warned.length).toBeGreaterThan(4)
  for (const [, wrong = '', , right = ''] of warned) {
    const asBool = (text: string) => (text.startsWith('timestamp') ? `${text} > timestamp(0)` : text)
    expect(remarksOnMatcher(asBool(wrong.trim().replaceAll('`', '')))).toHaveLength(1)
    const remedy = asBool(right.trim().replaceAll('`', ''))
    compileMatcher(remedy)
    expect(remarksOnMatcher(remedy)).toEqual([])
  }
})

it('says the limits', () => {
  for (const limit of [MATCHER_LIMITS.bytes, MATCHER_LIMITS.literalElements, MATCHER_LIMITS.steps])
    expect(page).toContain(limit.toLocaleString('en'))
})
