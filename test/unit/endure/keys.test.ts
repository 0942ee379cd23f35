import { expect, it } from 'vitest'
import { type KeyLife, keyProblems, kindsOf } from '../../../endure/growth/keys.ts'

const own = (name: string, ms: number): KeyLife => [`extauth:{default/lab}:${name}`, ms]
const GOOD = [
  own('v:credential:abc', 300_000),
  own('v:credential:def', 3_600_000),
  own('v:session:s', 86_400_000),
  own('l:refresh:s', 60_000),
  own('c:client:new', 7_776_000_000),
]
const found = (...keys: readonly KeyLife[]): readonly string[] => [
  ...keyProblems(kindsOf([...GOOD, ...keys]), { lives: 1, logins: 1, people: 1, connected: 0 }),
]

it('counts keys by kind, with the longest time to live', () => {
  expect(kindsOf(GOOD).slice(0, 2)).toEqual([
    { kind: 'v:credential', count: 2, longestSeconds: 3_600, endless: 0 },
    { kind: 'v:session', count: 1, longestSeconds: 86_400, endless: 0 },
  ])
  expect(found()).toEqual([])
})

it('finds keys without expiry, with a late expiry, too many, or of an unknown kind', () => {
  expect(found(own('l:x', -1))).toEqual(['1 keys l in Redis without an end'])
  expect(found(own('v:probe', 61_000))).toEqual(['keys v:probe in Redis for 61 s, at most 60'])
  expect(found(own('v:session:t', 1))).toEqual(['2 keys v:session in Redis, there was occasion for 1'])
  expect(found(own('v:odd:t', 1))).toEqual(['keys in Redis of an unknown kind: v:odd'])
})
