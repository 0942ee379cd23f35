import { describe, expect, test } from 'vitest'
import { createRoleMapper } from '../../../../src/obtain/cloud-sts/role-mapper.ts'
import type { RoleMapping } from '../../../../src/resources/index.ts'
import { claimsOf } from '../../../support/obtain/cloud-sts/support/deps.ts'
import { MATCHER_TABLES } from '../../../support/obtain/cloud-sts/support/matcher-tables.ts'
import { CLAIM_TABLES, type Shorthand } from '../../../support/obtain/cloud-sts/support/role-tables.ts'

const TABLES = [...CLAIM_TABLES, ...MATCHER_TABLES]
const REFUSALS = new Set(['no_role', 'rule_limit', 'matcher_error'])
const arn = (role: string) => `arn:aws:iam::123456789012:role/${role}`

const mappings = (rows: readonly Shorthand[]): RoleMapping[] =>
  rows.map(([role, rule, priority]) => ({
    roleArn: arn(role),
    ...rule,
    ...(priority === undefined ? {} : { priority }),
  }))

describe.each(TABLES)('$name', ({ mappings: rows, roleClaim = 'groups', fallback, onMatcherError, cases }) => {
  const mapper = createRoleMapper(
    { roleClaim, roleMappings: mappings(rows), ...(fallback === undefined ? {} : { fallbackRoleArn: arn(fallback) }) },
    onMatcherError === undefined ? {} : { onMatcherError },
  )

  test.each(cases)('%j → %s', (claims, expected) => {
    const { roleArn, refusal } = mapper.choose(claimsOf(claims))
    expect({ roleArn, refusal }).toEqual(
      REFUSALS.has(expected)
        ? { roleArn: undefined, refusal: expected }
        : { roleArn: arn(expected), refusal: undefined },
    )
  })
})

test('the tables have at least 150 cases', () => {
  expect(TABLES.reduce((sum, { cases }) => sum + cases.length, 0)).toBeGreaterThanOrEqual(150)
})
