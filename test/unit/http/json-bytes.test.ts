import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { readJsonObject } from '../../../src/http/index.ts'

const parse = (text: string) => readJsonObject(Buffer.from(text))

test('an object with distinct names is what JSON.parse says it is', () => {
  const check = () =>
    fc.assert(
      fc.property(fc.dictionary(fc.string({ unit: 'binary' }), fc.jsonValue()), (value) => {
        const text = JSON.stringify(value)
        expect(JSON.stringify(parse(text))).toBe(JSON.stringify(JSON.parse(text)))
      }),
      { numRuns: 500, seed: 3 },
    )
  expect(check).not.toThrow()
})

test.each([
  '{"a":1,"a":1}',
  '{"a":1,"b":{"c":1,"c":2}}',
  '{"a":[{"c":1},{"c":1,"d":2,"c":3}]}',
  '{"a":1,"\\u0061":2}',
  '{"__proto__":1,"__proto__":2}',
  '{"":1,"":2}',
  '{"a\\"":1,"a\\u0022":2}',
])('%s has a name twice', (text) => {
  expect(JSON.parse(text)).toBeTypeOf('object')
  expect(parse(text)).toBeUndefined()
})

test.each(['{"a":"a","b":"a"}', '{"a":["a","a"]}', '{"a":{"a":{"a":1}}}', '{"x":":","y":"{","z":"}\\\\"}', '{}'])(
  '%s has not',
  (text) => {
    expect(parse(text)).toBeDefined()
  },
)

test.each(['', 'null', '[]', '1', '"a"', '{', '{"a":1,}', "{'a':1}", '{"a":NaN}', '{} {}'])(
  '%j is no object',
  (text) => {
    expect(parse(text)).toBeUndefined()
  },
)

test('a megabyte of nesting or of names is parsed in reasonable time', () => {
  const names = `{${Array.from({ length: 60_000 }, (_, index) => `"n${index}":1`).join(',')}}`
  expect(Object.keys(parse(names) ?? {})).toHaveLength(60_000)
  const depth = 50_000
  const started = performance.now()
  parse(`{"a":${'['.repeat(depth)}${']'.repeat(depth)}}`)
  expect(parse(`{"a":"${'\\"'.repeat(400_000)}"}`)).toBeDefined()
  expect(performance.now() - started).toBeLessThan(10_000)
})
