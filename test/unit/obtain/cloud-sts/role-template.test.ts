import { describe, expect, test } from 'vitest'
import { decide } from '../../../../src/obtain/cloud-sts/decision.ts'
import { createRoleMapper } from '../../../../src/obtain/cloud-sts/role-mapper.ts'
import { createCloudStsSource } from '../../../../src/obtain/cloud-sts/source.ts'
import type { RoleMapping } from '../../../../src/resources/index.ts'
import { authOf, callerOf, claimsOf, depsOf } from '../../../support/obtain/cloud-sts/support/deps.ts'
import { HOSTILE } from '../../../support/obtain/cloud-sts/support/hostile.ts'

const FALLBACK = 'arn:aws:iam::999999999999:role/guest'
const TEMPLATE = 'arn:aws:iam::{claims.account}:role/{claims.org.unit}/mcp-{claims.team}'
const ACCOUNTS = ['111111111111', '222222222222']
const GOOD = { sub: 'ada', account: '111111111111', org: { unit: 'eng' }, team: 'search' }

const mapperOf = (mapping: Partial<RoleMapping>) =>
  createRoleMapper({
    roleClaim: 'groups',
    fallbackRoleArn: FALLBACK,
    roleMappings: [
      { roleArnTemplate: TEMPLATE, allowedAccounts: ACCOUNTS, matcher: 'has(claims.sub)', ...mapping },
      { roleArn: 'arn:aws:iam::999999999999:role/next', matcher: 'true' },
    ],
  })

describe('a role by template', () => {
  test('is made of the claims at its placeholders', () => {
    expect(mapperOf({}).choose(claimsOf(GOOD))).toMatchObject({
      roleArn: 'arn:aws:iam::111111111111:role/eng/mcp-search',
      by: 'mapping',
      refusal: undefined,
      steps: [{ roleArn: TEMPLATE, outcome: 'matched' }, { outcome: 'not_evaluated' }],
    })
  })

  test.each(['a', 'Search_1', 'me+you@example.com', 'a=b,c.d-e', '.', 'x'.repeat(64)])('takes %j', (team) => {
    expect(mapperOf({}).choose(claimsOf({ ...GOOD, team })).roleArn).toBe(
      `arn:aws:iam::111111111111:role/eng/mcp-${team}`,
    )
  })

  test('a claim whose own name has dots comes before a path', () => {
    const roleArnTemplate = 'arn:aws:iam::111111111111:role/{claims.https://example.com/team}'
    const mapper = mapperOf({ roleArnTemplate, allowedAccounts: undefined })
    expect(mapper.choose(claimsOf({ sub: 'ada', 'https://example.com/team': 'search' })).roleArn).toBe(
      'arn:aws:iam::111111111111:role/search',
    )
  })

  describe.each(HOSTILE.map((value) => [JSON.stringify(value).slice(0, 40), value] as const))('%s', (_text, value) => {
    test.each([
      { ...GOOD, team: value },
      { ...GOOD, org: { unit: value } },
      { ...GOOD, account: value },
    ])('is 403 role_denied in any place, never the next role or the fallback', (claims) => {
      const choice = mapperOf({}).choose(claimsOf(claims))
      expect(choice).toMatchObject({ roleArn: undefined, by: undefined, refusal: 'role_denied' })
      if (typeof value === 'string' && value.length > 2)
        expect(JSON.stringify(choice)).not.toContain(JSON.stringify(value))
    })
  })

  test.each([['account'], ['org'], ['team']])('a caller without %s has no role', (missing) => {
    const claims = Object.fromEntries(Object.entries(GOOD).filter(([name]) => name !== missing))
    expect(mapperOf({}).choose(claimsOf(claims))).toMatchObject({
      refusal: 'role_denied',
      reason: expect.stringMatching(/is missing$/),
    })
  })

  test.each(['333333333333', '11111111111', '1111111111111', 'search'])('the account %s is not allowed', (account) => {
    expect(mapperOf({}).choose(claimsOf({ ...GOOD, account }))).toMatchObject({
      refusal: 'role_denied',
      reason: 'the account is not in allowedAccounts',
    })
  })

  test('a mapping that does not match keeps the fallback', () => {
    const mapper = createRoleMapper({
      roleClaim: 'groups',
      fallbackRoleArn: FALLBACK,
      roleMappings: [{ roleArnTemplate: TEMPLATE, allowedAccounts: ACCOUNTS, claim: 'other' }],
    })
    expect(mapper.choose(claimsOf({ sub: 'ada' }))).toMatchObject({ roleArn: FALLBACK, by: 'fallback' })
  })

  test('two templates that render different claims to the same text are distinguished by the claims', () => {
    const source = createCloudStsSource(
      authOf({
        roleMappings: [{ roleArnTemplate: 'arn:aws:iam::111111111111:role/{claims.a}-{claims.b}', matcher: 'true' }],
      }),
      depsOf(undefined).deps,
    )
    const [one, two] = [
      { sub: 'ada', a: 'x-y', b: 'z' },
      { sub: 'ada', a: 'x', b: 'y-z' },
    ].map((claims) => source.plan(callerOf(claims)))
    expect(one?.role).toBe('arn:aws:iam::111111111111:role/x-y-z')
    expect(two?.role).toBe(one?.role)
    expect(two?.keyParts).not.toEqual(one?.keyParts)
  })

  test('the finished ARN is in plan and cache key, the template in the decision', () => {
    const spec = { roleMappings: [{ roleArnTemplate: TEMPLATE, allowedAccounts: ACCOUNTS, matcher: 'true' }] }
    const plan = createCloudStsSource(authOf(spec), depsOf(undefined).deps).plan(callerOf(GOOD))
    expect(plan.role).toBe('arn:aws:iam::111111111111:role/eng/mcp-search')
    expect(plan.keyParts).toContain(plan.role)
    const decision = decide('default/x', { sessionNameClaim: 'sub' }, mapperOf({}), callerOf(GOOD))
    expect(decision.choice.steps[0]?.roleArn).toBe(TEMPLATE)
  })

  test('a rejection is reported with its reason and without the value', () => {
    const spec = { roleMappings: [{ roleArnTemplate: TEMPLATE, allowedAccounts: ACCOUNTS, matcher: 'true' }] }
    const source = createCloudStsSource(authOf(spec), depsOf(undefined).deps)
    expect(() => source.plan(callerOf({ ...GOOD, team: 'a/b' }))).toThrow(
      expect.objectContaining({
        code: 'role_denied',
        detail: expect.stringMatching(/^the claim "team" has invalid characters/),
      }),
    )
  })
})
