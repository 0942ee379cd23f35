import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { STSClient } from '@aws-sdk/client-sts'
import { type AwsCredential, monotonic, type Outbound } from '../../../../src/core/index.ts'
import { createCloudStsSource } from '../../../../src/obtain/cloud-sts/index.ts'
import { tokenOf } from '../../../support/shown-tokens.ts'
import { stsEndpoint, toAwsPartition } from '../../../../src/obtain/cloud-sts/endpoint.ts'
import type { CloudSts } from '../../../../src/resources/index.ts'
import { seconds } from '../../../../src/fields/index.ts'
import { authOf, callerOf, depsOf } from '../../../support/obtain/cloud-sts/support/deps.ts'
import { credentialsXml, startStsDouble, type StsDouble } from '../../../support/obtain/cloud-sts/support/sts-double.ts'

let sts: StsDouble
beforeAll(async () => {
  sts = await startStsDouble()
})
afterAll(() => sts.close())
afterEach(() => {
  sts.calls.splice(0)
  sts.headers.splice(0)
  vi.unstubAllEnvs()
})

const ROLE = 'arn:aws:iam::123456789012:role/path/reader'
const alice = callerOf({ sub: 'alice' })

async function call(spec: Partial<CloudSts>) {
  const { deps } = depsOf(sts.url)
  const source = createCloudStsSource(authOf({ fallbackRoleArn: ROLE, ...spec }), deps)
  return source.fetch(alice, source.plan(alice), monotonic(Infinity), tokenOf(alice))
}

describe('AssumeRoleWithWebIdentity', () => {
  test('sends role, session name, duration and the token, in the body and nowhere else', async () => {
    await call({ sessionDuration: seconds(900) })
    expect(Object.fromEntries(sts.calls[0] ?? [])).toEqual({
      Action: 'AssumeRoleWithWebIdentity',
      Version: '2011-06-15',
      RoleArn: ROLE,
      RoleSessionName: 'alice',
      DurationSeconds: '900',
      WebIdentityToken: tokenOf(alice).reveal(),
    })
    expect(JSON.stringify(sts.headers[0])).not.toContain(tokenOf(alice).reveal())
    expect(sts.headers[0]).not.toHaveProperty('authorization')
  })

  test('sends session policies where they are configured', async () => {
    await call({
      sessionPolicy: '{"Statement":[]}',
      policyArns: ['arn:aws:iam::aws:policy/A', 'arn:aws:iam::aws:policy/B'],
    })
    expect(Object.fromEntries(sts.calls[0] ?? [])).toMatchObject({
      Policy: '{"Statement":[]}',
      'PolicyArns.member.1.arn': 'arn:aws:iam::aws:policy/A',
      'PolicyArns.member.2.arn': 'arn:aws:iam::aws:policy/B',
    })
  })

  test('gives a credential for the region and service, with its end', async () => {
    sts.answer = () => ({ body: credentialsXml({ sessionToken: 'tok&amp;en' }) })
    const { credential, expiresAtMs } = await call({ region: 'us-gov-west-1', service: 'bedrock-agentcore' })
    const aws = credential as AwsCredential
    expect(aws).toMatchObject({
      kind: 'aws',
      accessKeyId: 'ASIATESTTESTTEST0001',
      region: 'us-gov-west-1',
      service: 'bedrock-agentcore',
    })
    expect([aws.secretAccessKey.reveal(), aws.sessionToken?.reveal()]).toEqual(['secret/+=', 'tok&en'])
    expect(expiresAtMs).toBe(Date.parse('2029-06-01T01:00:00Z'))
    expect(aws.signing).toEqual({ day: '', key: undefined })
  })

  test('asks neither the environment, nor profiles, nor instance metadata, and does not retry', async () => {
    const elsewhere = 'http://127.0.0.1:1'
    for (const [name, value] of Object.entries({
      AWS_ENDPOINT_URL: elsewhere,
      AWS_ENDPOINT_URL_STS: elsewhere,
      AWS_PROFILE: 'absent',
      AWS_CONFIG_FILE: '/nonexistent',
      AWS_EC2_METADATA_SERVICE_ENDPOINT: elsewhere,
      AWS_MAX_ATTEMPTS: '9',
      AWS_USE_FIPS_ENDPOINT: 'true',
      AWS_ACCESS_KEY_ID: 'AKIDAMBIENT',
      AWS_SECRET_ACCESS_KEY: 'ambient',
    })) {
      vi.stubEnv(name, value)
    }
    sts.answer = () => ({ status: 503 })
    await expect(call({})).rejects.toMatchObject({ code: 'sts_unavailable' })
    expect(sts.calls).toHaveLength(1)
    expect(sts.headers[0]).not.toHaveProperty('authorization')
  })
})

describe('where STS is', () => {
  const recorder = (urls: string[]): Outbound => ({
    request: ({ url, body }) => {
      urls.push(`${url} ${new URLSearchParams(String(body)).get('RoleArn')}`)
      return Promise.resolve({ status: 200, headers: {}, body: Buffer.from(credentialsXml({})) })
    },
    close: () => Promise.resolve(),
  })

  test.each([
    [
      'eu-central-1',
      'arn:aws:iam::123456789012:role/r',
      undefined,
      'https://sts.eu-central-1.amazonaws.com/ arn:aws:iam::123456789012:role/r',
    ],
    [
      'us-gov-west-1',
      'arn:aws-us-gov:iam::123456789012:role/r',
      undefined,
      'https://sts.us-gov-west-1.amazonaws.com/ arn:aws-us-gov:iam::123456789012:role/r',
    ],
    [
      'cn-north-1',
      'arn:aws-cn:iam::123456789012:role/r',
      undefined,
      'https://sts.cn-north-1.amazonaws.com.cn/ arn:aws-cn:iam::123456789012:role/r',
    ],
    [
      'eu-central-1',
      'arn:cloud:iam::123456789012:role/r',
      undefined,
      'https://sts.eu-central-1.amazonaws.com/ arn:aws:iam::123456789012:role/r',
    ],
    [
      'cn-north-1',
      'arn:cloud-cn:iam::123456789012:role/r',
      undefined,
      'https://sts.cn-north-1.amazonaws.com.cn/ arn:aws-cn:iam::123456789012:role/r',
    ],
    [
      'us-gov-east-1',
      'arn:cloud-us-gov:iam::123456789012:role/cloud',
      undefined,
      'https://sts.us-gov-east-1.amazonaws.com/ arn:aws-us-gov:iam::123456789012:role/cloud',
    ],
    [
      'eu-central-1',
      'arn:cloud:iam::123456789012:role/r',
      'https://sts.example/base',
      'https://sts.example/base/ arn:cloud:iam::123456789012:role/r',
    ],
  ])('%s %s, endpoint %s', async (region, fallbackRoleArn, endpoint, expected) => {
    const urls: string[] = []
    const { deps } = depsOf(endpoint, { outbound: () => recorder(urls) })
    const source = createCloudStsSource(authOf({ region, fallbackRoleArn }), deps)
    await source.fetch(alice, source.plan(alice), monotonic(Infinity), tokenOf(alice))
    expect(urls).toEqual([expected])
  })

  test.each([
    [{ endpoint: 'https://option.example', ambientEndpoint: 'https://variable.example' }, 'https://option.example'],
    [{ ambientEndpoint: 'https://variable.example' }, 'https://config.example'],
    [{}, 'https://config.example'],
  ])(
    'what the process was started with (%j) goes before the config, the variable after it: %s',
    async (sts, expected) => {
      const urls: string[] = []
      const { deps } = depsOf(undefined, { outbound: () => recorder(urls), sts })
      const spec = { fallbackRoleArn: 'arn:cloud:iam::123456789012:role/r', stsEndpoint: 'https://config.example' }
      const source = createCloudStsSource(authOf(spec), deps)
      await source.fetch(alice, source.plan(alice), monotonic(Infinity), tokenOf(alice))
      // To an endpoint that was configured, ARNs go as they are written.
      expect(urls).toEqual([`${expected}/ ${spec.fallbackRoleArn}`])
    },
  )

  test('the variable counts where neither says anything', async () => {
    const urls: string[] = []
    const sts = { ambientEndpoint: 'https://variable.example' }
    const { deps } = depsOf(undefined, { outbound: () => recorder(urls), sts })
    const source = createCloudStsSource(authOf({ fallbackRoleArn: ROLE }), deps)
    await source.fetch(alice, source.plan(alice), monotonic(Infinity), tokenOf(alice))
    expect(urls).toEqual([`https://variable.example/ ${ROLE}`])
  })

  test.each([
    'us-east-1',
    'eu-central-1',
    'ap-southeast-7',
    'mx-central-1',
    'cn-north-1',
    'cn-northwest-1',
    'us-gov-west-1',
    'us-iso-east-1',
    'us-isob-east-1',
    'us-isof-south-1',
    'eu-isoe-west-1',
  ])("%s is where the SDK's own rules say", (region) => {
    const { endpointProvider } = new STSClient({ region }).config
    const rules = { Region: region, UseFIPS: false, UseDualStack: false, UseGlobalEndpoint: false }
    expect(`${stsEndpoint({ region })}/`).toBe(endpointProvider(rules).url.href)
  })

  test.each([
    ['arn:cloud:iam::1:role/cloud', 'arn:aws:iam::1:role/cloud'],
    ['arn:cloud-cn:iam::1:role/x', 'arn:aws-cn:iam::1:role/x'],
    ['arn:aws:iam::1:role/arn:cloud:x', 'arn:aws:iam::1:role/arn:cloud:x'],
    ['arn:cloudy:iam::1:role/x', 'arn:cloudy:iam::1:role/x'],
  ])('%s is %s there', (arn, expected) => {
    expect(toAwsPartition(arn)).toBe(expected)
  })
})
