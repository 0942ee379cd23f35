import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { JsonError, parseJsonObject } from '../../../src/http/index.ts'

const parsed = (text: string): unknown => JSON.parse(JSON.stringify(parseJsonObject(text)))

/** The result of JSON.parse; undefined when it throws. */
const roundTripped = (text: string): unknown => {
  try {
    // Written once more, because JSON has no way to write -0.
    return JSON.parse(JSON.stringify(JSON.parse(text)))
  } catch {
    return undefined
  }
}

const isRefused = (text: string): boolean => {
  try {
    parseJsonObject(text)
    return false
  } catch (error) {
    if (error instanceof JsonError) return true
    throw error
  }
}

describe('parseJsonObject', () => {
  it('reads every object as JSON.parse does, whatever the spaces', () => {
    const objects = fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 5 }))
    fc.assert(
      fc.property(objects, fc.constantFrom(0, 1, '\t', 3), (object, space) => {
        const text = JSON.stringify(object, null, space)
        expect(parsed(text)).toEqual(JSON.parse(text))
      }),
      { seed: 20261121, numRuns: 500 },
    )
  })

  it('never accepts what JSON.parse refuses, and never fails in another way', () => {
    const pieces = [
      '{',
      '}',
      '[',
      ']',
      ',',
      ':',
      '"a"',
      '"',
      '\\',
      '\\u00e9',
      '1',
      '-',
      '0',
      '.5',
      'e3',
      'true',
      'nul',
      ' ',
      '\n',
      'é',
      '\u0000',
    ]
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...pieces), { maxLength: 12 }), (parts) => {
        const text = `{"a":${parts.join('')}}`
        const theirs = roundTripped(text)
        expect(isRefused(text) ? theirs : parsed(text)).toEqual(theirs)
      }),
      { seed: 20261121, numRuns: 5000 },
    )
  })

  it.each([
    '{"a":1,"a":1}',
    '{"a":1,"\\u0061":2}',
    '{"a":{"b":[{"c":1,"c":2}]}}',
    '{"a":1e400}',
    '{"a":-1e400}',
    `{"a":${'['.repeat(33)}${']'.repeat(33)}}`,
    `${'{"a":'.repeat(34)}1${'}'.repeat(34)}`,
    '[]',
    'null',
    '"text"',
    '7',
    '',
    '{"a":01}',
    '{"a":+1}',
    '{"a":.1}',
    '{"a":1.}',
    '{"a":NaN}',
    "{'a':1}",
    '{a:1}',
    '{"a":1,}',
    '{"a":[1,]}',
    '{"a":"\t"}',
    '{"a":"\\x41"}',
    '{"a":1}/**/',
    '{"a":1}\u00a0',
    '{"a":tru',
    '{"a":"',
    '{"a":"\\',
    '{"a"',
    '{"a":1',
  ])('refuses %s', (text) => {
    expect(isRefused(text)).toBe(true)
  })

  it('survives a megabyte of brackets, braces, digits and quotes', () => {
    for (const piece of ['[', '{"a":', '9', '\\"', 'x']) {
      const text = `{"a":"${piece.repeat(200_000)}`
      expect(isRefused(text)).toBe(true)
      expect(isRefused(`{"a":${piece.repeat(200_000)}`)).toBe(true)
    }
  })

  it('gives objects without a prototype, frozen all the way down', () => {
    const value = parseJsonObject('{"__proto__":{"polluted":1},"a":[{"b":{}}],"constructor":null}')
    expect(Object.keys(value)).toEqual(['__proto__', 'a', 'constructor'])
    expect(Reflect.ownKeys(Object.getPrototypeOf(value) as object)).toEqual([])
    expect(Object.getPrototypeOf(Object.getPrototypeOf(value))).toBeNull()
    expect(Object.isFrozen(Object.getPrototypeOf(value))).toBe(true)
    expect('polluted' in value).toBe(false)
    expect('toString' in value).toBe(false)
    const walk = (node: unknown): void => {
      if (typeof node !== 'object' || node === null) return
      expect(Object.isFrozen(node)).toBe(true)
      Object.values(node).forEach(walk)
    }
    walk(value)
  })
})
