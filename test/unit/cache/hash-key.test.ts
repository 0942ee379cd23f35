import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { hashKey } from '../../../src/cache/index.ts'

test('the same parts give the same key, 256 bits in base64url', () => {
  expect(hashKey(['a', 'b'])).toBe(hashKey(['a', 'b']))
  expect(hashKey([])).toMatch(/^[-_A-Za-z0-9]{43}$/)
})

test.each([
  [
    ['ab', 'c'],
    ['a', 'bc'],
  ],
  [['a', ''], ['a']],
  [
    ['', 'a'],
    ['a', ''],
  ],
  [['1:a'], ['a']],
  [['a1:b'], ['a', 'b']],
  [['\ud800'], ['\ud801']],
  [['é'], ['e\u0301']],
])('%j and %j are different keys', (one, other) => {
  expect(hashKey(one)).not.toBe(hashKey(other))
})

test('no two different lists give the same key, whatever is in them', () => {
  const parts = fc.array(fc.string({ unit: fc.constantFrom('1', ':', 'a', '\ud800', '\udc00', '\0'), maxLength: 4 }), {
    maxLength: 4,
  })
  fc.assert(
    fc.property(parts, parts, (one, other) => {
      expect(hashKey(one) === hashKey(other)).toBe(JSON.stringify(one) === JSON.stringify(other))
    }),
    { numRuns: 5_000, seed: 2 },
  )
})
