import { AssumeRoleWithWebIdentityCommand, STSClient } from '@aws-sdk/client-sts'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { LabIdentityProvider, LabSts } from '../../../lab/index.ts'
import { movableClock, ROLES, startProvider, startSts } from '../../support/lab/standins.ts'

const clock = movableClock()
let identity: LabIdentityProvider
let sts: LabSts
let client: STSClient

beforeAll(async () => {
  identity = await startProvider(clock)
  sts = await startSts(identity, clock)
  client = new STSClient({ region: 'eu-west-1', endpoint: sts.url, maxAttempts: 1 })
})
afterAll(async () => {
  client.destroy()
  await sts.close()
  await identity.close()
})
afterEach(() => sts.faults.set({ sts: 'none' }))

interface Asked {
  RoleArn?: string
  RoleSessionName?: string
  WebIdentityToken?: string
  DurationSeconds?: number
  Policy?: string
}

const [ADMIN, READER, OTHER] = ROLES.map(({ arn }) => arn)

async function assume(asked: Asked = {}) {
  return client.send(
    new AssumeRoleWithWebIdentityCommand({
      RoleArn: READER,
      RoleSessionName: 'alice',
      WebIdentityToken: await identity.mint({ sub: 'alice', groups: ['admins'] }),
      ...asked,
    }),
  )
}

describe('AssumeRoleWithWebIdentity by the official client', () => {
  test('gives credentials that the lab knows', async () => {
    const answer = await assume({ RoleArn: ADMIN ?? '', DurationSeconds: 900 })
    expect(answer).toMatchObject({
      SubjectFromWebIdentityToken: 'alice',
      Audience: 'extauth-lab',
      Provider: identity.url,
      AssumedRoleUser: { Arn: 'arn:cloud:sts::000000000000:assumed-role/admin/alice' },
      Credentials: { Expiration: new Date(clock.now() + 900_000) },
    })
    const { AccessKeyId = '', SecretAccessKey, SessionToken } = answer.Credentials ?? {}
    expect(AccessKeyId).toMatch(/^ASIA[A-Z0-9]{16}$/)
    expect(sts.lookup(AccessKeyId)).toMatchObject({
      secretAccessKey: SecretAccessKey,
      sessionToken: SessionToken,
      roleArn: ADMIN,
      subject: 'alice',
    })
  })

  const cases: readonly [string, Asked | (() => Promise<Asked>), number, string][] = [
    ['a session name with a space', { RoleSessionName: 'a b' }, 400, 'ValidationError'],
    ['a session name of one character', { RoleSessionName: 'a' }, 400, 'ValidationError'],
    ['a session name of 65 characters', { RoleSessionName: 'a'.repeat(65) }, 400, 'ValidationError'],
    ['a role that is no ARN', { RoleArn: 'admin' }, 400, 'ValidationError'],
    ['899 seconds', { DurationSeconds: 899 }, 400, 'ValidationError'],
    ['43201 seconds', { DurationSeconds: 43_201 }, 400, 'ValidationError'],
    ["more than the role's maximum", { DurationSeconds: 3601 }, 400, 'ValidationError'],
    ['a policy that is no JSON', { Policy: '{' }, 400, 'MalformedPolicyDocument'],
    ['a policy that is too large', { Policy: JSON.stringify('x'.repeat(2048)) }, 400, 'PackedPolicyTooLarge'],
    ['an unknown role', { RoleArn: 'arn:cloud:iam::000000000000:role/none' }, 403, 'AccessDenied'],
    ['a role that wants another audience', { RoleArn: OTHER ?? '' }, 403, 'AccessDenied'],
    [
      'a role that wants a group',
      async () => ({ RoleArn: ADMIN ?? '', WebIdentityToken: await identity.mint({ sub: 'bob' }) }),
      403,
      'AccessDenied',
    ],
    ['a token that is none', { WebIdentityToken: 'abcd' }, 400, 'InvalidIdentityToken'],
    [
      'an opaque token',
      async () => ({ WebIdentityToken: await identity.mint({ sub: 'a', opaque: true }) }),
      400,
      'InvalidIdentityToken',
    ],
    [
      'an expired token',
      async () => ({ WebIdentityToken: await identity.mint({ sub: 'a', ttlSeconds: -10 }) }),
      400,
      'ExpiredTokenException',
    ],
    [
      'an untrusted audience',
      async () => ({ WebIdentityToken: await identity.mint({ sub: 'a', aud: ['x'] }) }),
      400,
      'InvalidIdentityToken',
    ],
    [
      'a token that is not valid yet',
      async () => ({
        WebIdentityToken: await identity.mint({ sub: 'a', claims: { nbf: Math.floor(clock.now() / 1000) + 100 } }),
      }),
      403,
      'IDPRejectedClaim',
    ],
  ]
  test.each(cases)('%s is refused', async (_name, asked, status, code) => {
    const call = assume(typeof asked === 'function' ? await asked() : asked)
    await expect(call).rejects.toMatchObject({ $metadata: { httpStatusCode: status }, Code: code })
  })

  test('a token of another issuer is refused', async () => {
    const other = await startProvider(clock)
    const token = await other.mint({ sub: 'alice' })
    await other.close()
    await expect(assume({ WebIdentityToken: token })).rejects.toMatchObject({ name: 'InvalidIdentityTokenException' })
  })

  test('calls are counted by role', async () => {
    const before = sts.calls(READER)
    await assume()
    await assume()
    expect(sts.calls(READER) - before).toBe(2)
  })
})

describe('the query protocol', () => {
  const post = (body: string, headers: Record<string, string> = {}, path = '/') =>
    fetch(`${sts.url}${path}`, {
      method: 'POST',
      body,
      headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
    })

  test.each([
    ['another action', 'Action=GetSessionToken&Version=2011-06-15', {}, 400, 'InvalidAction'],
    ['an unsigned AssumeRole', 'Action=AssumeRole&Version=2011-06-15', {}, 403, 'MissingAuthenticationToken'],
    [
      'an unsigned GetCallerIdentity',
      'Action=GetCallerIdentity&Version=2011-06-15',
      {},
      403,
      'MissingAuthenticationToken',
    ],
    ['no version', 'Action=AssumeRoleWithWebIdentity', {}, 400, 'InvalidAction'],
    ['no parameters', 'Action=AssumeRoleWithWebIdentity&Version=2011-06-15', {}, 400, 'ValidationError'],
    ['a JSON body', '{}', { 'content-type': 'application/json' }, 400, 'InvalidParameterValue'],
  ])('%s is refused in XML', async (_name, body, headers, status, code) => {
    const response = await post(body, headers)
    expect([response.status, response.headers.get('content-type')]).toEqual([status, 'text/xml'])
    expect(await response.text()).toContain(`<Code>${code}</Code>`)
  })

  test('a role given twice is refused', async () => {
    const twice = `Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=${READER}&RoleArn=${READER}`
    expect(await (await post(twice)).text()).toContain('<Code>ValidationError</Code>')
  })

  test('a body over 64 KiB is refused', async () => {
    expect((await post(`Action=${'x'.repeat(70_000)}`)).status).toBe(413)
  })
})

describe('the switch', () => {
  test('throttles', async () => {
    sts.faults.set({ sts: 'throttled' })
    await expect(assume()).rejects.toMatchObject({ Code: 'Throttling', $metadata: { httpStatusCode: 400 } })
  })

  test('is out of service', async () => {
    sts.faults.set({ sts: 'broken' })
    await expect(assume()).rejects.toMatchObject({ $metadata: { httpStatusCode: 503 } })
  })

  test('takes credentials back: they are as good as expired', async () => {
    const id = (await assume()).Credentials?.AccessKeyId ?? ''
    sts.faults.set({ sts: 'revoking' })
    expect(sts.lookup(id)?.expiresAtMs).toBe(0)
  })
})
