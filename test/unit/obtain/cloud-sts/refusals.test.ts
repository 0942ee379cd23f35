import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createCloudStsSource } from '../../../../src/obtain/cloud-sts/index.ts'
import { authOf, callerOf, depsOf } from '../../../support/obtain/cloud-sts/support/deps.ts'
import { startStsDouble, type StsDouble } from '../../../support/obtain/cloud-sts/support/sts-double.ts'

let sts: StsDouble
beforeAll(async () => {
  sts = await startStsDouble()
})
afterAll(() => sts.close())

const role = (name: string) => `arn:aws:iam::123456789012:role/${name}`

describe('callers who can have no credential are refused without a call', () => {
  const spec = {
    roleMappings: [
      { roleArn: role('admin'), claim: 'admins' },
      { roleArn: role('costly'), matcher: 'claims.groups.all(g, claims.groups.all(h, h != "z"))' },
    ],
  }
  const groups = Array.from({ length: 200 }, (_, index) => `g${index}`)

  test.each([
    ['no mapping matches', { sub: 'a', groups: 'x' }, {}, 'skip', 'no_role'],
    ['a rule reaches its limit', { sub: 'a', groups }, {}, 'skip', 'rule_limit'],
    ['a matcher fails and the route says deny', { sub: 'a' }, {}, 'deny', 'matcher_error'],
    ['the claim of the session name is absent', { groups: ['admins'] }, {}, 'skip', 'session_name_missing'],
    ['the claim of the session name is a number', { sub: 7, groups: ['admins'] }, {}, 'skip', 'session_name_missing'],
    ['the claim of the session name is a list', { sub: ['a'], groups: ['admins'] }, {}, 'skip', 'session_name_missing'],
    [
      'the token is opaque',
      { sub: 'a', groups: ['admins'] },
      { format: 'opaque' as const },
      'skip',
      'opaque_token_unsupported',
    ],
  ] as const)('%s', (_what, claims, rest, onMatcherError, code) => {
    const { deps, counts } = depsOf(sts.url, { onMatcherError })
    const source = createCloudStsSource(authOf(spec), deps)
    expect(() => source.plan(callerOf(claims, rest))).toThrow(expect.objectContaining({ code, status: 403 }))
    expect(counts.get(`extauth_role_decisions_total ${code}`)).toBe(1)
    expect(sts.calls).toHaveLength(0)
  })

  test('failed matchers are counted and logged, without values of claims', () => {
    const { deps, counts, lines } = depsOf(sts.url)
    const matchers = ['claims.dept == "x"', 'claims.secret > 1', 'claims.secret == "y"']
    const roleMappings = matchers.map((matcher) => ({ roleArn: role('r'), matcher }))
    const source = createCloudStsSource(authOf({ roleMappings, fallbackRoleArn: role('guest') }), deps)
    expect(source.plan(callerOf({ sub: 'alice', secret: 'do-not-log' })).role).toBe(role('guest'))
    expect(counts.get('extauth_role_matcher_failures_total error')).toBe(2)
    expect(lines).toHaveLength(2)
    expect(lines[0]).toMatchObject({ config: 'default/backend', mapping: 1, missingKey: 'dept', line: 1, column: 7 })
    expect(JSON.stringify(lines)).not.toContain('do-not-log')
  })
})
