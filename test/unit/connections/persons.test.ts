import { expect, test } from 'vitest'
import { createPersons, isPerson, matchIn } from '../../../src/connections/persons.ts'
import { createMemoryStore, createSeal, createSealingKeys } from '../../../src/storage/index.ts'
import { createManualClock, createRecordingLog } from '../../support/ports.ts'

test.each([
  [{ tid: 't', oid: 'o' }, true],
  [{ tid: 't', oid: 'o', sub: 'more' }, true],
  [{ tid: 't' }, false],
  [{ tid: 't', oid: 'other' }, false],
  [{ tid: 'other', oid: 'o' }, false],
  [{ tid: 't', oid: ['o'] }, false],
  [{ tid: 't', oid: 'O' }, false],
])('the person of {tid, oid}: %j is %j', (claims, expected) => {
  expect(isPerson({ tid: 't', oid: 'o' }, claims)).toBe(expected)
})

test('numbers and texts differ', () => {
  expect(isPerson({ uid: 7 }, { uid: 7 })).toBe(true)
  expect(isPerson({ uid: 7 }, { uid: '7' })).toBe(false)
})

test('a link without claims is for no person', () => {
  expect(isPerson({}, { sub: 'alice' })).toBe(false)
  expect(isPerson(undefined, { sub: 'alice' })).toBe(false)
})

test.each([{}, { sub: '' }, { sub: null }, { sub: ['alice'] }, { sub: { id: 'alice' } }, Object.create({ sub: 'x' })])(
  'a token with %j has no claims to prove',
  (claims: Record<string, unknown>) => {
    expect(matchIn(['sub'], claims)).toBeUndefined()
  },
)

test('identities are found at their issuer only', async () => {
  const clock = createManualClock()
  const store = createMemoryStore({ clock, log: createRecordingLog() })
  const persons = createPersons(store, createSeal(createSealingKeys([]), clock))
  const alice = { issuer: 'https://one.example', identity: 'sub:alice' }
  await persons.note({ tid: 't', oid: 'o' }, alice)
  expect(await persons.find(alice.issuer, { oid: 'o', tid: 't' })).toEqual([alice])
  expect(await persons.find('https://other.example', { oid: 'o', tid: 't' })).toEqual([])
  expect(await persons.find(alice.issuer, { oid: 'o', tid: 'u' })).toEqual([])
})
