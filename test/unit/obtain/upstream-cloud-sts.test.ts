import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import type { AwsCredential } from '../../../src/core/index.ts'
import { createCachedSource } from '../../../src/obtain/cached.ts'
import { createCloudStsSource } from '../../../src/obtain/cloud-sts/index.ts'
import type { UpstreamUse } from '../../../src/resources/index.ts'
import { asked, tokenOf as shownBy } from '../../support/shown-tokens.ts'
import { authOf, callerOf, depsOf } from '../../support/obtain/cloud-sts/support/deps.ts'
import {
  credentialsXml,
  errorXml,
  startStsDouble,
  type StsDouble,
} from '../../support/obtain/cloud-sts/support/sts-double.ts'
import { createUpstreamTokens, OURS, use } from '../../support/obtain/upstream-tokens.ts'

let sts: StsDouble
beforeAll(async () => {
  sts = await startStsDouble()
})
afterAll(() => sts.close())
afterEach(() => sts.calls.splice(0))

const READER = 'arn:aws:iam::123456789012:role/reader'

function source(upstream: Partial<UpstreamUse> = {}) {
  sts.answer = (form) => ({ body: credentialsXml({ sessionToken: form.get('WebIdentityToken') ?? '' }) })
  const made = depsOf(sts.url, { deadlineMs: 20_000 })
  const tokens = createUpstreamTokens(() => made.clock.now())
  const deps = { ...made.deps, upstreamTokens: tokens }
  const auth = {
    ...authOf({ roleMappings: [{ roleArn: READER, claim: 'admins' }] }),
    upstream: use({ kind: 'id_token', ...upstream }),
  }
  return { tokens, source: asked(createCachedSource(auth, createCloudStsSource(auth, deps), deps)) }
}

const caller = (tsid: string, claims: object = {}) =>
  callerOf({ sub: 'alice', groups: ['admins'], client_id: 'editor', tsid, ...claims }, { issuer: OURS })
const tokenOf = (credential: unknown) => (credential as AwsCredential).sessionToken?.reveal()

test('the web identity is the provider’s ID token, and the role is chosen by our own claims', async () => {
  const { source: obtain } = source()
  expect(tokenOf(await obtain.obtain(caller('one')))).toBe('id_token-corp-one-0')
  expect(() => obtain.obtain(caller('one', { groups: [] }))).toThrow(expect.objectContaining({ code: 'no_role' }))
})

test('all tokens of a session share a credential, and two sessions share none', async () => {
  const { source: obtain } = source()
  const [first, second] = [
    await obtain.obtain(caller('one', { jti: '1' })),
    await obtain.obtain(caller('one', { jti: '2' })),
  ]
  expect(second).toBe(first)
  expect(tokenOf(await obtain.obtain(caller('two')))).toBe('id_token-corp-two-0')
  expect(sts.calls).toHaveLength(2)
})

test('an ID token that STS takes for expired is renewed, and shown once more', async () => {
  const { source: obtain, tokens } = source()
  const right = sts.answer
  sts.answer = (form) =>
    form.get('WebIdentityToken') === 'id_token-corp-one-0'
      ? { status: 400, body: errorXml('ExpiredToken') }
      : right(form)
  expect(tokenOf(await obtain.obtain(caller('one')))).toBe('id_token-corp-one-1')
  expect(tokens.refreshes.get('one')).toBe(1)
})

test('a caller from elsewhere has none', async () => {
  const { source: obtain } = source()
  const stranger = callerOf({ sub: 'alice', groups: ['admins'], tsid: 'one' })
  expect(() => obtain.obtain(stranger)).toThrow(expect.objectContaining({ code: 'no_session' }))
  const { source: filledIn } = source({ isExplicit: false })
  expect(tokenOf(await filledIn.obtain(stranger))).toBe(shownBy(stranger).reveal())
})
