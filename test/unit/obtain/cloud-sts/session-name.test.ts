import { createHash } from 'node:crypto'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createRoleMapper, decide, stsEndpoint } from '../../../../src/obtain/cloud-sts/index.ts'
import { sessionNameOf } from '../../../../src/obtain/cloud-sts/session-name.ts'
import { callerOf } from '../../../support/obtain/cloud-sts/support/deps.ts'

const ISSUER = 'https://issuer.example'
const LEGAL = /^[\w+=,.@-]{2,64}$/
const suffixOf = (...parts: string[]) =>
  `-${createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 16)}`

describe('the role session name', () => {
  test.each([
    'alice',
    'al',
    'a.b+c=d,e@f-g_h',
    'ada.lovelace@example.com',
    'x'.repeat(64),
    '0042',
    '--',
    '-0123456789abcde',
  ])('is the claim itself where STS takes it: %s', (claim) => {
    expect(sessionNameOf(claim, ISSUER, 'sub')).toEqual({ name: claim, changes: [] })
  })

  test.each([
    ['auth0|5f7c8ec7', 'auth0-5f7c8ec7', ['characters_replaced']],
    ['user name', 'user-name', ['characters_replaced']],
    ['héllo', 'h-llo', ['characters_replaced']],
    ['👩‍💻', '---', ['characters_replaced']],
    ['spiffe://x/y', 'spiffe---x-y', ['characters_replaced']],
    ['a\r\nb', 'a--b', ['characters_replaced']],
    ['x'.repeat(65), 'x'.repeat(47), ['too_long']],
    ['|'.repeat(200), '-'.repeat(47), ['characters_replaced', 'too_long']],
    ['', '', ['too_short']],
    ['a', 'a', ['too_short']],
    ['|', '-', ['characters_replaced', 'too_short']],
    ['alice-0123456789abcdef', 'alice-0123456789abcdef', ['looks_derived']],
    ['alice-0123456789ABCDEF', 'alice-0123456789ABCDEF', ['looks_derived']],
    ['alice|0123456789abcdef', 'alice-0123456789abcdef', ['characters_replaced', 'looks_derived']],
    [`${'x'.repeat(47)}-0123456789abcdef`, 'x'.repeat(47), ['looks_derived']],
  ])('is changed and marked otherwise: %j', (claim, start, changes) => {
    expect(sessionNameOf(claim, ISSUER, 'sub')).toEqual({ name: `${start}${suffixOf(ISSUER, 'sub', claim)}`, changes })
  })

  test('the mark is of issuer, caller and claim, which do not run into each other', () => {
    const names = [
      sessionNameOf('a b', 'https://i', 'sub'),
      sessionNameOf('a b', 'https://isu', 'b'),
      sessionNameOf('a b', 'https://i', 'sub2'),
      sessionNameOf('a b', 'https://i"', 'sub'),
      sessionNameOf('a|b', 'https://i', 'sub'),
    ].map(({ name }) => name)
    expect(new Set(names).size).toBe(names.length)
  })

  const text = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 200 }),
    fc.string({ unit: fc.constantFrom('a', 'b', '-', '|', ' ', 'é', '@'), maxLength: 90 }),
    fc.tuple(fc.constantFrom('alice', 'bob', ''), fc.stringMatching(/^[0-9a-f]{16}$/)).map(([a, b]) => `${a}-${b}`),
  )

  test('is always one that STS takes', () => {
    fc.assert(
      fc.property(text, text, (issuer, subject) => {
        expect(sessionNameOf(subject, issuer, subject).name).toMatch(LEGAL)
      }),
      { numRuns: 2_000, seed: 5 },
    )
  })

  test('differs for different subjects of an issuer', () => {
    fc.assert(
      fc.property(fc.uniqueArray(text, { minLength: 2, maxLength: 40 }), (subjects) => {
        const names = subjects.map((subject) => sessionNameOf(subject, ISSUER, subject).name)
        expect(new Set(names).size).toBe(subjects.length)
      }),
      { numRuns: 500, seed: 5 },
    )
  })

  test.each([
    ['a|b@x', 'a/b@x'],
    [`${'x'.repeat(64)}a`, `${'x'.repeat(64)}b`],
    [`${'x'.repeat(60)}-0123456789abcdef`, `${'x'.repeat(61)}-0123456789abcdef`],
    ['', '|'],
    ['a', 'á'],
  ])('of one caller differs for different claims: %j and %j', (one, other) => {
    expect(sessionNameOf(one, ISSUER, 'token:x').name).not.toBe(sessionNameOf(other, ISSUER, 'token:x').name)
  })

  test('of different callers differs for the same claim that had to be changed', () => {
    expect(sessionNameOf('a|b@x', ISSUER, 'token:x').name).not.toBe(sessionNameOf('a|b@x', ISSUER, 'token:y').name)
  })

  test('differs for different claims of one caller, whatever they are', () => {
    fc.assert(
      fc.property(fc.uniqueArray(text, { minLength: 2, maxLength: 40 }), (claims) => {
        const names = claims.map((claim) => sessionNameOf(claim, ISSUER, 'token:x').name)
        expect(new Set(names).size).toBe(claims.length)
      }),
      { numRuns: 500, seed: 5 },
    )
  })

  test('a subject can not take the name that another one was given', () => {
    const given = sessionNameOf('auth0|victim', ISSUER, 'auth0|victim').name
    expect(sessionNameOf(given, ISSUER, given).name).not.toBe(given)
  })
})

test.each([
  ['realm.user', { realm: { user: 'ada' } }, 'ada'],
  ['realm.user', { 'realm.user': 'bob', realm: { user: 'ada' } }, 'bob'],
  ['realm.user', { realm: { user: ['ada'] } }, undefined],
  ['realm.user', { realm: 'ada' }, undefined],
  ['constructor.name', {}, undefined],
])('sessionNameClaim %s of %j names %s', (sessionNameClaim, claims, name) => {
  const mapper = createRoleMapper({ roleClaim: 'groups', fallbackRoleArn: 'arn' }, { onMatcherError: 'skip' })
  const decision = decide('default/backend', { sessionNameClaim }, mapper, callerOf({ sub: 'x', ...claims }))
  expect(decision.session?.name).toBe(name)
  expect(decision.refusal).toBe(name === undefined ? 'session_name_missing' : undefined)
})

test.each([
  ['eu-central-1', 'sts.eu-central-1.amazonaws.com'],
  ['us-gov-west-1', 'sts.us-gov-west-1.amazonaws.com'],
  ['cn-north-1', 'sts.cn-north-1.amazonaws.com.cn'],
  ['us-iso-east-1', 'sts.us-iso-east-1.c2s.ic.gov'],
  ['us-isob-east-1', 'sts.us-isob-east-1.sc2s.sgov.gov'],
  ['us-isof-south-1', 'sts.us-isof-south-1.csp.hci.ic.gov'],
  ['eu-isoe-west-1', 'sts.eu-isoe-west-1.cloud.adc-e.uk'],
  ['eusc-de-east-1', 'sts.eusc-de-east-1.amazonaws.eu'],
])('STS of %s is at %s', (region, host) => expect(stsEndpoint({ region })).toBe(`https://${host}`))
