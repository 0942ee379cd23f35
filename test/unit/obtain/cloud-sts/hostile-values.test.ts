import { describe, expect, test } from 'vitest'
import { createRoleMapper } from '../../../../src/obtain/cloud-sts/role-mapper.ts'
import type { CloudSts, RoleMapping } from '../../../../src/resources/index.ts'
import { claimsOf } from '../../../support/obtain/cloud-sts/support/deps.ts'
import { HOSTILE } from '../../../support/obtain/cloud-sts/support/hostile.ts'

const ROLE = 'arn:aws:iam::123456789012:role/reader'
const FALLBACK = 'arn:aws:iam::999999999999:role/guest'
const ROWS = HOSTILE.map((value) => [JSON.stringify(value).slice(0, 40), value] as const)

/** The result for a caller with this claim; a rejection never selects the fallback and never shows the value. */
function made(mapping: Partial<RoleMapping>, value: unknown) {
  const spec: Pick<CloudSts, 'roleClaim' | 'fallbackRoleArn' | 'roleMappings'> = {
    roleClaim: 'groups',
    fallbackRoleArn: FALLBACK,
    roleMappings: [{ roleArn: ROLE, matcher: 'true', ...mapping }],
  }
  const choice = createRoleMapper(spec).choose(claimsOf({ sub: 'ada', value, deep: { value } }))
  if (choice.refusal === undefined) return choice
  expect(choice).toMatchObject({
    roleArn: undefined,
    by: undefined,
    refusal: 'role_denied',
    reason: expect.any(String),
  })
  if (typeof value === 'string' && value.length > 3) expect(choice.reason).not.toContain(value)
  return undefined
}

test('there are at least 30 of them', () => expect(HOSTILE.length).toBeGreaterThanOrEqual(30))

describe.each(['claims.value', 'claims.deep.value'])('as the value of a tag (%s)', (value) => {
  // API reference of STS, Tag.
  const documented = /^[\p{L}\p{Z}\p{N}_.:/=+\-@]*$/u
  test.each(ROWS)('%s is the exact tag if STS accepts it, otherwise no role is assumed', (_text, hostile) => {
    const choice = made({ sessionTags: [{ key: 'Team', value, allowEmpty: true }] }, hostile)
    const isTaken = typeof hostile === 'string' && documented.test(hostile) && hostile.length <= 256
    expect(choice?.attributes?.tags).toEqual(isTaken ? [{ key: 'Team', value: hostile, transitive: false }] : undefined)
  })
})

test.each(ROWS)('%s is no source identity', (_text, hostile) => {
  // API reference of STS, SourceIdentity.
  const isTaken = typeof hostile === 'string' && /^[\w+=,.@-]{2,64}$/.test(hostile)
  expect(made({ sourceIdentity: 'claims.value' }, hostile)?.attributes?.sourceIdentity).toBe(
    isTaken ? hostile : undefined,
  )
})

describe('in a session policy', () => {
  const statement = (value: string) => ({
    Effect: 'Allow',
    Action: 's3:GetObject',
    Resource: [`arn:aws:s3:::data/${value}/*`, `arn:aws:s3:::more/${value}`],
    Condition: { StringLike: { 'aws:ResourceTag/Team': value } },
  })
  const template = JSON.stringify({ Version: '2012-10-17', Statement: [statement('{claims.value}')] })
  test.each(ROWS)('%s stays within its string without wildcards, or no role is assumed', (_text, hostile) => {
    const policy = made({ sessionPolicy: { template } }, hostile)?.attributes?.policy
    if (policy === undefined) return
    expect(typeof hostile).toBe('string')
    const value = String(hostile)
    expect(JSON.parse(policy)).toEqual({ Version: '2012-10-17', Statement: [statement(value)] })
    expect(value).not.toMatch(/[*?$\p{C}]/u)
    expect(value.length).toBeGreaterThan(0)
  })

  test('the wide ones are refused', () => {
    const wide = HOSTILE.filter((value) => typeof value === 'string' && /[*?$]|^$/.test(value))
    expect(wide.length).toBeGreaterThanOrEqual(7)
    for (const value of wide) expect(made({ sessionPolicy: { template } }, value)).toBeUndefined()
  })
})
