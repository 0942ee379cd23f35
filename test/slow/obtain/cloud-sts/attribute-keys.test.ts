import * as fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { createCredentialCache } from '../../../../src/cache/index.ts'
import { type AwsCredential, type Credential, monotonic } from '../../../../src/core/index.ts'
import { createSource } from '../../../../src/obtain/index.ts'
import { createCloudStsSource } from '../../../../src/obtain/cloud-sts/source.ts'
import type { CloudSts } from '../../../../src/resources/index.ts'
import { asked } from '../../../support/shown-tokens.ts'
import { authOf, callerOf, countingMetrics, depsOf } from '../../../support/obtain/cloud-sts/support/deps.ts'
import { credentialsXml, startStsDouble, type StsDouble } from '../../../support/obtain/cloud-sts/support/sts-double.ts'

let sts: StsDouble
beforeAll(async () => {
  vi.stubEnv('AWS_ACCESS_KEY_ID', 'AKIAENVIRONMENT00001')
  vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'secret')
  vi.stubEnv('AWS_SESSION_TOKEN', undefined)
  sts = await startStsDouble()
})
afterAll(async () => {
  vi.unstubAllEnvs()
  await sts.close()
})

const template = '{"Statement":[{"Resource":"a/{claims.team}"}]}'
const SPEC: Partial<CloudSts> = {
  source: { type: 'ambient', chain: ['environment'] },
  sessionNameClaim: 'name',
  roleMappings: [
    {
      roleArnTemplate: 'arn:aws:iam::{claims.account}:role/{claims.team}',
      allowedAccounts: ['111111111111', '222222222222'],
      matcher: 'true',
      sessionTags: [
        { key: 'Session', value: 'claims.sid', optional: true },
        { key: 'Kind', value: 'claims.kind', optional: true, transitive: true },
      ],
      sourceIdentity: 'claims.nonce',
      sessionPolicy: { template },
    },
  ],
}
/** The request to STS for a caller, as sent. */
async function shown(source: ReturnType<typeof sourceOf>, claims: object): Promise<string> {
  sts.answer = () => ({ body: credentialsXml({ action: 'AssumeRole' }) })
  const caller = callerOf(claims)
  const plan = source.plan(caller)
  const before = sts.calls.length
  await source.fetch(caller, plan, monotonic(Infinity), undefined as never)
  return String(sts.calls[before])
}
const envOf = () => ({ AWS_ACCESS_KEY_ID: 'AKIAENVIRONMENT00001', AWS_SECRET_ACCESS_KEY: 'secret' })
const sourceOf = (spec: Partial<CloudSts> = SPEC) =>
  createCloudStsSource(authOf(spec), { ...depsOf(sts.url).deps, env: envOf() })

const claims = fc.record({
  sub: fc.constantFrom('ada', 'bob'),
  name: fc.constantFrom('ada', 'bob', 'a/d'),
  account: fc.constantFrom('111111111111', '222222222222'),
  team: fc.constantFrom('a', 'b', 'a-b'),
  // Of these two the key of claims knows nothing: they differ with each login.
  sid: fc.constantFrom('s1', 's2'),
  nonce: fc.constantFrom('n1', 'n2'),
  kind: fc.constantFrom('x', 'y'),
})

describe('what STS sees is in the key', () => {
  test('two callers who differ in anything that STS would see never share a credential', async () => {
    const source = sourceOf()
    let differed = 0
    await fc.assert(
      fc.asyncProperty(claims, claims, async (one, two) => {
        const [first, second] = [await shown(source, one), await shown(source, two)]
        const keys = [one, two].map((each) => JSON.stringify(source.plan(callerOf(each)).keyParts))
        if (first !== second && ++differed > 0) expect(keys[0]).not.toBe(keys[1])
      }),
      { numRuns: 150 },
    )
    expect(differed).toBeGreaterThan(50)
  })

  test.each(['sid', 'nonce'])(
    'the claim %s, which is not part of the key, is included through derived values',
    (name) => {
      const source = sourceOf()
      const base = { sub: 'ada', name: 'ada', account: '111111111111', team: 'a', sid: 's1', nonce: 'n1' }
      const keyOf = (each: object) => source.plan(callerOf(each)).keyParts
      expect(keyOf(base)).not.toEqual(keyOf({ ...base, [name]: 'z2' }))
    },
  )
})

describe('two mappings with the same role', () => {
  const roleArn = 'arn:aws:iam::111111111111:role/one'
  const base = { roleArn, sessionTags: [{ key: 'Kind', value: '"x"' }] }
  const others: readonly (readonly [string, object])[] = [
    ['external id', { externalId: 'of-one' }],
    ['source identity', { sourceIdentity: '"ada"' }],
    ['a tag', { sessionTags: [{ key: 'Kind', value: '"y"' }] }],
    ['a tag that is passed on', { sessionTags: [{ key: 'Kind', value: '"x"', transitive: true }] }],
    ['the key of a tag', { sessionTags: [{ key: 'kind', value: '"x"' }] }],
    ['policy', { sessionPolicy: { document: { Statement: [] } } }],
    ['managed policies', { policyArns: ['arn:aws:iam::aws:policy/A'] }],
  ]
  test.each(others)('share no credential where they differ in %s', async (_what, more) => {
    // The claim that chooses is none that the key knows.
    const matcher = (sid: string) => `claims.sid == "${sid}"`
    const source = sourceOf({
      ...SPEC,
      roleMappings: [
        { ...base, matcher: matcher('s1') },
        { ...base, ...more, matcher: matcher('s2') },
      ],
    })
    const [one, two] = ['s1', 's2'].map((sid) => ({ sub: 'ada', name: 'ada', sid }))
    expect(await shown(source, one ?? {})).not.toBe(await shown(source, two ?? {}))
    expect(source.plan(callerOf(one ?? {})).keyParts).not.toEqual(source.plan(callerOf(two ?? {})).keyParts)
  })
})

describe('300 callers with tags and templates, in any order, in a cache that is too small', () => {
  test('each has its own', async () => {
    // The session token encodes its request.
    sts.answer = (form) => ({
      body: credentialsXml({
        action: 'AssumeRole',
        sessionToken: Buffer.from(
          ['RoleArn', 'RoleSessionName', 'SourceIdentity', 'Policy', 'Tags.member.1.Value', 'Tags.member.2.Value']
            .map((name) => form.get(name))
            .join('|'),
        ).toString('base64'),
      }),
    })
    const { deps, clock } = depsOf(sts.url)
    const { metrics } = countingMetrics()
    const cache = createCredentialCache<Credential>({ clock, metrics, random: () => 0.5, maxEntries: 50 })
    const all = { ...deps, cache, env: envOf(), random: () => 0.5, secrets: { handle: () => undefined } as never }
    const source = asked(createSource(authOf(SPEC) as never, all))
    const callers = Array.from({ length: 300 }, (_, index) => ({
      sub: `user-${index % 60}`,
      name: `user-${index % 60}`,
      account: index % 2 === 0 ? '111111111111' : '222222222222',
      team: `team-${index % 7}`,
      sid: `session-${index % 5}`,
      nonce: `nonce-${index % 3}`,
      kind: `kind-${index % 11}`,
    }))
    const order = fc.sample(fc.shuffledSubarray([...callers, ...callers], { minLength: 600 }), 1)[0] ?? []
    const got = await Promise.all(
      order.map(async (each) => [each, (await source.obtain(callerOf(each))) as AwsCredential] as const),
    )
    expect(got).toHaveLength(600)
    for (const [each, credential] of got) {
      const session = Buffer.from(credential.sessionToken?.reveal() ?? '', 'base64').toString()
      const { account, team, name, nonce, sid, kind } = each
      const policy = template.replace('{claims.team}', team)
      expect(session).toBe([`arn:aws:iam::${account}:role/${team}`, name, nonce, policy, sid, kind].join('|'))
    }
  })
})
