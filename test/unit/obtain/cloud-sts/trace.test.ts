import { describe, expect, test } from 'vitest'
import { createRoleMapper } from '../../../../src/obtain/cloud-sts/role-mapper.ts'
import { claimsOf } from '../../../support/obtain/cloud-sts/support/deps.ts'

const arn = (role: string) => `arn:aws:iam::123456789012:role/${role}`
const spec = {
  roleClaim: 'groups',
  fallbackRoleArn: arn('guest'),
  roleMappings: [
    { roleArn: arn('last'), claim: 'everyone' },
    { roleArn: arn('broken'), matcher: 'claims.sub == "x" &&\n  claims.dept == "y"', priority: 1 },
    { roleArn: arn('chosen'), matcher: '"a" in claims.groups', priority: 2 },
    { roleArn: arn('costly'), matcher: 'claims.groups.all(g, claims.groups.all(h, h != "z"))', priority: 3 },
  ],
}
const claims = claimsOf({ sub: 'x', groups: ['a', 'everyone'], secret: 'do-not-repeat' })

describe('the trace of a role choice', () => {
  test('lists every mapping in the order of evaluation, and stops evaluating at the first match', () => {
    const { steps, ...choice } = createRoleMapper(spec).choose(claims)
    expect(choice).toEqual({ roleArn: arn('chosen'), by: 'mapping', refusal: undefined })
    expect(steps.map(({ mapping, outcome }) => [mapping, outcome])).toEqual([
      [2, 'error'],
      [3, 'matched'],
      [4, 'not_evaluated'],
      [1, 'not_evaluated'],
    ])
    expect(steps[0]).toMatchObject({ position: { line: 2, column: 9 }, missingKey: 'dept' })
  })

  test('with all it evaluates the rest too and chooses the same', () => {
    const mapper = createRoleMapper(spec)
    const { steps, ...choice } = mapper.choose(claims, { all: true })
    expect(choice).toEqual({ roleArn: arn('chosen'), by: 'mapping', refusal: undefined })
    expect(steps.map(({ mapping, outcome }) => [mapping, outcome])).toEqual([
      [2, 'error'],
      [3, 'matched'],
      [4, 'matched'],
      [1, 'matched'],
    ])
  })

  test('a limit after the match changes nothing, before it refuses', () => {
    const many = claimsOf({ sub: 'y', groups: ['a', ...Array.from({ length: 300 }, (_, index) => `g${index}`)] })
    expect(createRoleMapper(spec).choose(many, { all: true })).toMatchObject({ roleArn: arn('chosen') })
    const first = spec.roleMappings.map((mapping) => (mapping.priority === 3 ? { ...mapping, priority: 0 } : mapping))
    const refused = createRoleMapper({ ...spec, roleMappings: first }).choose(many)
    expect(refused).toMatchObject({ roleArn: undefined, refusal: 'rule_limit' })
    expect(refused.steps.map(({ outcome }) => outcome)).toEqual([
      'limit',
      'not_evaluated',
      'not_evaluated',
      'not_evaluated',
    ])
  })

  test('holds no value of a claim', () => {
    const trace = JSON.stringify(createRoleMapper(spec).choose(claims, { all: true }))
    expect(trace).not.toContain('do-not-repeat')
  })

  test('a matcher that does not compile is a configuration error with its place', () => {
    const broken = { ...spec, roleMappings: [{ roleArn: arn('x'), matcher: 'true &&\n groups' }] }
    expect(() => createRoleMapper(broken)).toThrow(
      expect.objectContaining({ code: 'config_error', detail: expect.stringContaining('line 2, column 2') as string }),
    )
  })
})

describe('a token from which the issuer left the groups out (overage)', () => {
  const overage = { _claim_names: { groups: 'src1' }, _claim_sources: { src1: { endpoint: 'https://graph.example' } } }
  const rules = (...roleMappings: object[]) => ({ ...spec, roleMappings }) as typeof spec
  const byGroup = { roleArn: arn('admin'), claim: 'admins' }
  const denied = { roleArn: undefined, by: undefined, refusal: 'no_role', reason: expect.stringContaining('"groups"') }

  test.each<[string, object]>([
    ['a claim', byGroup],
    ['a key', { roleArn: arn('admin'), matcher: '"admins" in claims.groups' }],
    ['its presence', { roleArn: arn('admin'), matcher: 'has(claims.groups)' }],
    ['its absence', { roleArn: arn('admin'), matcher: '!("groups" in claims)' }],
  ])('a rule on %s denies instead of falling back, and is named', (_name, rule) => {
    const chosen = createRoleMapper(rules(rule)).choose(claimsOf({ sub: 'x', ...overage }))
    expect(chosen).toMatchObject({ ...denied, steps: [{ outcome: 'overage', leftOut: 'groups' }] })
  })

  test('a rule that comes before and reads something else decides', () => {
    const first = { roleArn: arn('first'), matcher: 'claims.sub == "x" || "a" in claims.groups', priority: 1 }
    const mapper = createRoleMapper(rules(byGroup, first))
    expect(mapper.choose(claimsOf({ sub: 'x', ...overage }))).toMatchObject({ roleArn: arn('first') })
    expect(mapper.choose(claimsOf({ sub: 'y', ...overage }))).toMatchObject(denied)
  })

  test('with onGroupsOverage: fallback the rule does not match, and the trace still names the claim', () => {
    const mapper = createRoleMapper({ ...rules(byGroup), onGroupsOverage: 'fallback' })
    expect(mapper.choose(claimsOf({ sub: 'x', ...overage }))).toMatchObject({
      roleArn: arn('guest'),
      by: 'fallback',
      steps: [{ outcome: 'not_matched', leftOut: 'groups' }],
    })
  })

  test.each<[string, object]>([
    ['hasgroups of the implicit grant', { hasgroups: true }],
    ['a path below it', { _claim_names: { realm_access: 'src1' } }],
  ])('%s says the same', (_name, claims) => {
    const roleClaim = 'hasgroups' in claims ? 'groups' : 'realm_access.roles'
    expect(createRoleMapper({ ...rules(byGroup), roleClaim }).choose(claimsOf({ sub: 'x', ...claims }))).toMatchObject({
      refusal: 'no_role',
      steps: [{ outcome: 'overage' }],
    })
  })

  test.each<[string, object]>([
    ['groups that are there', { groups: ['admins'], ...overage }],
    ['another claim that was left out', { _claim_names: { address: 'src1' } }],
  ])('%s change nothing', (_name, claims) => {
    const { roleArn } = createRoleMapper(rules(byGroup)).choose(claimsOf({ sub: 'x', ...claims }))
    expect(roleArn).toBe('groups' in claims ? arn('admin') : arn('guest'))
  })
})
