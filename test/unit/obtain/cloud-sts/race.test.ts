import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { AwsCredential } from '../../../../src/core/index.ts'
import { createCachedSource } from '../../../../src/obtain/cached.ts'
import { createCloudStsSource } from '../../../../src/obtain/cloud-sts/index.ts'
import { asked } from '../../../support/shown-tokens.ts'
import { authOf, callerOf, depsOf } from '../../../support/obtain/cloud-sts/support/deps.ts'
import { credentialsXml, startStsDouble, type StsDouble } from '../../../support/obtain/cloud-sts/support/sts-double.ts'

let sts: StsDouble
beforeAll(async () => {
  sts = await startStsDouble()
})
afterAll(() => sts.close())
afterEach(() => sts.calls.splice(0))

const role = (name: string) => `arn:aws:iam::123456789012:role/${name}`
const spec = { roleMappings: ['a', 'b', 'c'].map((name) => ({ roleArn: role(name), claim: name })) }

function source() {
  let issued = 0
  sts.answer = (form) => ({
    delayMs: 5,
    body: credentialsXml({
      accessKeyId: `ASIATESTTEST${String(++issued).padStart(8, '0')}`,
      sessionToken: `${form.get('RoleArn')}#${form.get('RoleSessionName')}`,
    }),
  })
  const made = depsOf(sts.url, { deadlineMs: 20_000 })
  const auth = authOf(spec)
  return {
    ...made,
    source: asked(
      createCachedSource(auth, { ...createCloudStsSource(auth, made.deps), deadlineMs: 20_000 }, made.deps),
    ),
  }
}

const tokenOf = (credential: unknown) => (credential as AwsCredential).sessionToken?.reveal()

describe('one call for each caller and role', () => {
  test('a thousand cold requests of one caller make one call', async () => {
    const { source: obtain } = source()
    const caller = callerOf({ sub: 'alice', groups: ['a'] })
    const credentials = await Promise.all(Array.from({ length: 1_000 }, async () => obtain.obtain(caller)))
    expect(sts.calls).toHaveLength(1)
    expect(new Set(credentials).size).toBe(1)
  })

  test('a thousand cold requests of one subject with different tokens make one call', async () => {
    const { source: obtain } = source()
    const callers = Array.from({ length: 1_000 }, (_, jti) =>
      callerOf({ sub: 'alice', groups: ['a'], jti: String(jti) }),
    )
    const credentials = await Promise.all(callers.map(async (caller) => obtain.obtain(caller)))
    expect(sts.calls).toHaveLength(1)
    expect(new Set(credentials).size).toBe(1)
  })

  test('3 roles × 100 callers make 300 calls, and no caller gets another’s credential', async () => {
    const { source: obtain } = source()
    const pairs = ['a', 'b', 'c'].flatMap((group) =>
      Array.from({ length: 100 }, (_, index) => [group, `user-${index}`] as const),
    )
    const requests = Array.from({ length: 4 }, () => pairs).flat()
    const tokens = await Promise.all(
      requests.map(async ([group, sub]) => tokenOf(await obtain.obtain(callerOf({ sub, groups: [group] })))),
    )
    expect(tokens).toEqual(requests.map(([group, sub]) => `${role(group)}#${sub}`))
    expect(sts.calls).toHaveLength(300)
    expect(new Set(sts.calls.map((form) => `${form.get('RoleArn')} ${form.get('RoleSessionName')}`)).size).toBe(300)
  })

  test('a new token with another role gets another credential at once', async () => {
    const { source: obtain } = source()
    expect(tokenOf(await obtain.obtain(callerOf({ sub: 'alice', groups: ['a'] })))).toBe(`${role('a')}#alice`)
    expect(tokenOf(await obtain.obtain(callerOf({ sub: 'alice', groups: ['b'] })))).toBe(`${role('b')}#alice`)
    expect(sts.calls).toHaveLength(2)
  })

  test.each([
    ['aud', { aud: 'x' }, { aud: 'y' }],
    ['azp', { azp: 'x' }, { azp: 'y' }],
    ['amr', { amr: ['pwd'] }, { amr: ['pwd', 'mfa'] }],
    ['act', { act: { sub: 'x' } }, { act: { sub: 'y' } }],
    ['client_id', { client_id: 'x' }, {}],
    ['department', { department: 'finance' }, { department: 'sales' }],
    ['device', { device: { managed: true } }, { device: { managed: false } }],
    ['number', { level: 1 }, { level: 2 }],
    ['type', { level: 1 }, { level: '1' }],
    ['nested exp', { act: { exp: 1 } }, { act: { exp: 2 } }],
    ['claim of a name that objects have', { constructor: 'a' }, { constructor: 'b' }],
    [
      'tags',
      { 'https://aws.amazon.com/tags': { principal_tags: { a: ['1'] } } },
      { 'https://aws.amazon.com/tags': { principal_tags: { a: ['2'] } } },
    ],
  ])('a new token with another %s gets a credential of its own', async (_claim, first, second) => {
    const { source: obtain } = source()
    await obtain.obtain(callerOf({ sub: 'alice', groups: ['a'], ...first }))
    await obtain.obtain(callerOf({ sub: 'alice', groups: ['a'], ...first, iat: 7 }))
    expect(sts.calls).toHaveLength(1)
    await obtain.obtain(callerOf({ sub: 'alice', groups: ['a'], ...second }))
    expect(sts.calls).toHaveLength(2)
  })

  test.each('exp iat nbf jti auth_time nonce at_hash c_hash s_hash sid session_state uti rh aio'.split(' '))(
    'a new token with another %s gets the same credential',
    async (claim) => {
      const { source: obtain } = source()
      await obtain.obtain(callerOf({ sub: 'alice', groups: ['a'], [claim]: 'x' }))
      await obtain.obtain(callerOf({ sub: 'alice', groups: ['a'], [claim]: 'y' }))
      await obtain.obtain(callerOf({ sub: 'alice', groups: ['a'] }))
      expect(sts.calls).toHaveLength(1)
    },
  )

  test('the order of the members of a claim makes no other credential', async () => {
    const { source: obtain } = source()
    await obtain.obtain(callerOf({ sub: 'alice', groups: ['a'], act: { sub: 'x', iss: 'y' } }))
    await obtain.obtain(callerOf({ sub: 'alice', groups: ['a'], act: { iss: 'y', sub: 'x' } }))
    expect(sts.calls).toHaveLength(1)
  })
})

describe('a warm request', () => {
  test('evaluates no rule: the decision is kept with the token', async () => {
    const { source: obtain, counts } = source()
    const caller = callerOf({ sub: 'alice', groups: ['a'] })
    await obtain.obtain(caller)
    for (let round = 0; round < 100; round++) expect(obtain.obtain(caller)).not.toBeInstanceOf(Promise)
    expect(counts.get('extauth_role_decisions_total mapping')).toBe(1)
  })

  test('a refusal is kept with the token too', () => {
    const { source: obtain, counts } = source()
    const caller = callerOf({ sub: 'alice', groups: [] })
    for (let round = 0; round < 100; round++) expect(() => obtain.obtain(caller)).toThrow('no_role')
    expect(counts.get('extauth_role_decisions_total no_role')).toBe(1)
    expect(sts.calls).toHaveLength(0)
  })
})
