import { describe, expect, test } from 'vitest'
import { createKnownConfigs } from '../../../src/operator/config/known-config.ts'

const ROLE = 'arn:aws:iam::123456789012:role/reader'
const known = (cloudSts: object) =>
  createKnownConfigs('extauth.dev').of({
    apiVersion: 'extauth.dev/v1alpha1',
    kind: 'MCPExternalAuthConfig',
    metadata: { name: 'aws', namespace: 'n' },
    spec: { type: 'cloudSts', cloudSts: { region: 'eu-central-1', ...cloudSts } },
  })

describe('what pods need for AWS', () => {
  test.each([
    [false, { fallbackRoleArn: ROLE }],
    [true, { source: { type: 'ambient' } }],
    [true, { source: { type: 'ambient', chain: ['podIdentity'] }, fallbackRoleArn: ROLE }],
    [false, { source: { type: 'ambient', chain: ['webIdentityFile'] }, fallbackRoleArn: ROLE }],
    [
      true,
      { source: { type: 'role', through: { roleArn: ROLE, source: { type: 'ambient' } } }, fallbackRoleArn: ROLE },
    ],
    [
      false,
      {
        source: { type: 'role', through: { roleArn: ROLE, source: { type: 'ambient', chain: ['environment'] } } },
        fallbackRoleArn: ROLE,
      },
    ],
  ])('the agent of pod identity: %s for %j', (needed, cloudSts) => {
    expect(known(cloudSts).valid?.needsPodIdentity).toBe(needed)
  })

  test('STS, of the region where none is named', () => {
    expect(known({ fallbackRoleArn: ROLE }).valid?.urls).toEqual(['https://sts.eu-central-1.amazonaws.com'])
    const stsEndpoint = 'https://sts.example.com:8443'
    expect(known({ fallbackRoleArn: ROLE, stsEndpoint }).valid?.urls).toEqual([stsEndpoint])
  })

  test('an invalid config is reported with the remedy', () => {
    const { problems } = known({ fallbackRoleArn: ROLE, sessionTags: [{ key: 'Team', value: 'claims.team' }] })
    expect(problems.join()).toContain('let the identity provider put them into its tokens')
  })
})
