import { describe, expect, test } from 'vitest'
import type { Known, Obtain } from '../../../../src/core/index.ts'
import { createDecisionLog } from '../../../../src/obtain/cloud-sts/decision-log.ts'
import { createCloudStsSource } from '../../../../src/obtain/cloud-sts/source.ts'
import { authOf, callerOf, depsOf } from '../../../support/obtain/cloud-sts/support/deps.ts'

const spec = {
  source: { type: 'ambient' as const, chain: ['environment' as const] },
  fallbackRoleArn: 'arn:aws:iam::123456789012:role/reader',
  sessionNameClaim: 'role',
  sessionTags: [{ key: 'Team', value: 'claims.team', transitive: true }],
  sourceIdentity: 'claims.email',
  roleMappings: [
    {
      roleArn: 'arn:aws:iam::123456789012:role/writer',
      matcher: 'true',
      sessionPolicy: { template: '{"Statement":[{"Resource":"a/{claims.team}"}]}' },
      policyArns: ['arn:aws:iam::aws:policy/A'],
    },
  ],
}
const caller = callerOf({ sub: 'ada', role: 'operator', team: 'do-not-show', email: 'ada@do-not-show' })

/** The entry of one request in `GET /decisions`. */
function decided(showClaims: boolean): string {
  const log = createDecisionLog({ clock: { now: () => 7 }, showClaims })
  const decisions = log.forRoute('aws')
  const source = createCloudStsSource(authOf(spec), { ...depsOf(undefined).deps, decisions })
  source.plan(caller)
  const stage = { obtain: () => undefined } as unknown as Obtain
  decisions.recording(stage).obtain({ matched: { inbound: { id: '1' } }, caller } as unknown as Known) as unknown
  return JSON.stringify(log.list()[0]?.decision)
}

describe('tags, source identity and policy in /decisions', () => {
  test('have names without values, and the policy as it is written', () => {
    const text = decided(false)
    expect(text).not.toContain('do-not-show')
    expect(JSON.parse(text)).toMatchObject({
      choice: {
        attributes: {
          tags: [{ key: 'Team', transitive: true }],
          writtenPolicy: spec.roleMappings[0]?.sessionPolicy.template,
          policyArns: ['arn:aws:iam::aws:policy/A'],
        },
      },
    })
  })

  test('have values where claims are shown', () => {
    expect(JSON.parse(decided(true))).toMatchObject({
      choice: {
        attributes: {
          tags: [{ key: 'Team', value: 'do-not-show' }],
          sourceIdentity: 'ada@do-not-show',
          policy: '{"Statement":[{"Resource":"a/do-not-show"}]}',
        },
      },
    })
  })
})
