import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { ANONYMOUS, type AwsCredential } from '../../../../src/core/index.ts'
import { createSource } from '../../../../src/obtain/index.ts'
import type { CloudSts, StsSource } from '../../../../src/resources/index.ts'
import { asked } from '../../../support/shown-tokens.ts'
import { FROM, type Rig, startRig } from '../../../support/obtain/cloud-sts/identity/rig.ts'
import { authOf, callerOf, depsOf } from '../../../support/obtain/cloud-sts/support/deps.ts'
import { credentialsXml, errorXml } from '../../../support/obtain/cloud-sts/support/sts-double.ts'

let rig: Rig
beforeAll(async () => {
  rig = await startRig()
})
afterAll(() => rig.close())
afterEach(() => {
  rig.sts.calls.length = 0
  rig.sts.headers.length = 0
})

const ROLE = 'arn:aws:iam::123456789012:role/reader'
const HOP = 'arn:aws:iam::222222222222:role/hub'
const END = '2029-06-01T01:00:00Z'
const AMBIENT: StsSource & { type: 'ambient' } = { type: 'ambient', chain: ['environment'] }
const CHAINED: StsSource = {
  type: 'role',
  through: { roleArn: HOP, externalId: 'of-the-hub', source: AMBIENT },
}

function sourceOf(spec: Partial<CloudSts>) {
  const env = rig.environment({ AWS_ACCESS_KEY_ID: FROM.environment, AWS_SECRET_ACCESS_KEY: 'secret' })
  const { deps, clock, lines } = depsOf(rig.sts.url)
  const secrets = { handle: () => Promise.reject(new Error('none')) }
  const all = { ...deps, env, random: () => 0.5, secrets: secrets as never }
  return { source: asked(createSource(authOf(spec) as never, all)), clock, lines, deps: all }
}
const given = async (source: ReturnType<typeof sourceOf>['source'], caller = callerOf({ sub: 'ada' })) =>
  (await source.obtain(caller)) as AwsCredential
/** Access key that signed the request with this index. */
const signer = (index: number) => /Credential=([^/]+)/.exec(rig.sts.headers[index]?.authorization ?? '')?.[1]
const answers = () => {
  rig.sts.answer = (form) => {
    const hub = form.get('RoleArn') === HOP
    return {
      body: credentialsXml({
        action: 'AssumeRole',
        accessKeyId: hub ? 'ASIATHEHUBTHEHUB0001' : FROM.assumed,
        expiration: END,
      }),
    }
  }
}

describe('a role that the identity of the process assumes for a caller', () => {
  test('is asked for with its name, duration and external id, signed', async () => {
    answers()
    const { source } = sourceOf({
      source: AMBIENT,
      fallbackRoleArn: ROLE,
      externalId: 'of:us/1',
      policyArns: ['arn:aws:iam::aws:policy/A'],
    })
    const credential = await given(source)
    expect(credential).toMatchObject({
      kind: 'aws',
      accessKeyId: FROM.assumed,
      region: 'eu-central-1',
      service: 'aws-mcp',
    })
    expect(Object.fromEntries(rig.sts.calls[0] ?? [])).toEqual({
      Action: 'AssumeRole',
      Version: '2011-06-15',
      RoleArn: ROLE,
      RoleSessionName: 'ada',
      DurationSeconds: '3600',
      ExternalId: 'of:us/1',
      'PolicyArns.member.1.arn': 'arn:aws:iam::aws:policy/A',
    })
    expect(signer(0)).toBe(FROM.environment)
    expect(await given(source)).toBe(credential)
  })

  test('has the external id of its mapping, else that of the config, the fallback too', async () => {
    answers()
    const matcher = (name: string) => `claims.sub == "${name}"`
    const { source } = sourceOf({
      source: AMBIENT,
      fallbackRoleArn: ROLE,
      externalId: 'of-all',
      roleMappings: [
        { roleArn: ROLE, matcher: matcher('ada'), externalId: 'of-one' },
        { roleArn: ROLE, matcher: matcher('bob') },
      ],
    })
    for (const sub of ['ada', 'bob', 'eve']) await given(source, callerOf({ sub }))
    expect(rig.sts.calls.map((form) => form.get('ExternalId'))).toEqual(['of-one', 'of-all', 'of-all'])
  })

  test('is there for opaque tokens too, and never shows one', async () => {
    answers()
    const { source } = sourceOf({ source: AMBIENT, fallbackRoleArn: ROLE })
    await given(source, callerOf({ sub: 'ada' }, { format: 'opaque' }))
    expect(rig.sts.calls[0]?.has('WebIdentityToken')).toBe(false)
  })

  test('is another for each caller', async () => {
    answers()
    const { source } = sourceOf({ source: AMBIENT, fallbackRoleArn: ROLE })
    await given(source)
    await given(source, callerOf({ sub: 'bob' }))
    await given(source, callerOf({ sub: 'ada', team: 'search' }))
    expect(rig.sts.calls.map((form) => form.get('RoleSessionName'))).toEqual(['ada', 'bob', 'ada'])
  })

  test('is refused for anonymous callers', async () => {
    const { source } = sourceOf({ source: AMBIENT, fallbackRoleArn: ROLE })
    expect(() => source.obtain(ANONYMOUS)).toThrow(expect.objectContaining({ code: 'config_error' }))
  })

  test.each([
    [
      'AccessDenied',
      'User: arn:aws:iam::1:user/x is not authorized to perform: sts:TagSession on resource: y',
      'role_denied',
      /403 AccessDenied: sts:TagSession is denied/,
    ],
    [
      'AccessDenied',
      'User: arn:aws:iam::1:user/x is not authorized to perform: sts:AssumeRole on resource: y',
      'role_denied',
      /403 AccessDenied: sts:AssumeRole is denied/,
    ],
    ['AccessDenied', 'no', 'role_denied', /AccessDenied$/],
    [
      'ExpiredToken',
      'The security token included in the request is expired',
      'aws_identity_unavailable',
      /ExpiredToken$/,
    ],
    [
      'InvalidClientTokenId',
      'The security token included in the request is invalid.',
      'aws_identity_unavailable',
      /InvalidClientTokenId$/,
    ],
    ['SignatureDoesNotMatch', 'x', 'config_error', /SignatureDoesNotMatch$/],
    [
      'ValidationError',
      'The requested DurationSeconds exceeds the 1 hour session limit for roles assumed by role chaining.',
      'config_error',
      /role chaining limits sessions/,
    ],
    ['Throttling', 'Rate exceeded', 'sts_throttled', /Throttling$/],
  ])('%s (%s) is %s', async (code, message, failure, detail) => {
    rig.sts.answer = () => ({ status: 403, body: errorXml(code, message) })
    const { source } = sourceOf({ source: AMBIENT, fallbackRoleArn: ROLE })
    const error = await given(source).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ code: failure, detail: expect.stringMatching(detail) })
    expect(String(error)).not.toMatch(/user\/x|is not authorized/)
  })
})

test('too much for STS is the caller’s matter where claims are in it, else the configuration’s', async () => {
  rig.sts.answer = () => ({ status: 400, body: errorXml('PackedPolicyTooLarge') })
  const plain = sourceOf({ source: AMBIENT, fallbackRoleArn: ROLE, policyArns: ['arn:aws:iam::aws:policy/A'] })
  await expect(given(plain.source)).rejects.toMatchObject({ code: 'config_error' })
  const sessionTags = [{ key: 'Who', value: 'claims.sub' }]
  const tagged = sourceOf({ source: AMBIENT, fallbackRoleArn: ROLE, sessionTags })
  await expect(given(tagged.source)).rejects.toMatchObject({
    code: 'role_denied',
    detail: 'STS answered 400 PackedPolicyTooLarge',
  })
  const constant = [{ key: 'Team', value: '"search"' }]
  const same = sourceOf({ source: AMBIENT, fallbackRoleArn: ROLE, sessionTags: constant })
  await expect(given(same.source)).rejects.toMatchObject({ code: 'config_error' })
})

test('a code of STS that is not known keeps its name', async () => {
  rig.sts.answer = () => ({ status: 400, body: errorXml('SomethingNewException', 'about user/x') })
  const { source } = sourceOf({ source: AMBIENT, fallbackRoleArn: ROLE })
  await expect(given(source)).rejects.toMatchObject({ detail: 'STS answered 400 SomethingNewException' })
  rig.sts.answer = () => ({ status: 400, body: errorXml('about user/x') })
  const other = sourceOf({ source: AMBIENT, fallbackRoleArn: ROLE })
  await expect(given(other.source)).rejects.toMatchObject({ detail: 'STS answered 400' })
})

describe('a role behind another', () => {
  test('is assumed from the role of the first hop, which is assumed once for all callers', async () => {
    answers()
    const { source } = sourceOf({ source: CHAINED, fallbackRoleArn: ROLE })
    await given(source)
    await given(source, callerOf({ sub: 'bob' }))
    expect(
      rig.sts.calls.map((form) => [form.get('RoleArn'), form.get('RoleSessionName'), form.get('ExternalId')]),
    ).toEqual([
      [HOP, 'mcp-extauth', 'of-the-hub'],
      [ROLE, 'ada', null],
      [ROLE, 'bob', null],
    ])
    expect([signer(0), signer(1), signer(2)]).toEqual([
      FROM.environment,
      'ASIATHEHUBTHEHUB0001',
      'ASIATHEHUBTHEHUB0001',
    ])
  })

  test.each([
    ['the role', AMBIENT],
    ['the hop', CHAINED],
  ])('a second after STS is well, %s is there: no token was shown that could rest', async (_what, source) => {
    rig.sts.answer = () => ({ status: 500, body: '' })
    const { source: signed, clock } = sourceOf({ source, fallbackRoleArn: ROLE })
    await expect(given(signed)).rejects.toMatchObject({ code: 'sts_unavailable', retryAfterSeconds: 1 })
    answers()
    clock.nowMs += 1_000
    expect(await given(signed)).toMatchObject({ accessKeyId: FROM.assumed })
  })

  test('a first hop that is refused is our mistake and no caller’s', async () => {
    rig.sts.answer = () => ({
      status: 403,
      body: errorXml('AccessDenied', 'not authorized to perform: sts:AssumeRole'),
    })
    const { source } = sourceOf({ source: CHAINED, fallbackRoleArn: ROLE })
    await expect(given(source)).rejects.toMatchObject({
      code: 'config_error',
      detail: expect.stringMatching(/sts:AssumeRole/),
    })
  })

  test('keys of the hop that STS does not take any more are renewed, and it is asked once more', async () => {
    answers()
    const { source, clock } = sourceOf({ source: CHAINED, fallbackRoleArn: ROLE })
    await given(source)
    clock.nowMs += 60_000
    let hubs = 0
    rig.sts.answer = (form) => {
      if (form.get('RoleArn') === HOP)
        return {
          body: credentialsXml({ action: 'AssumeRole', accessKeyId: `ASIATHEHUBAGAIN0000${++hubs}`, expiration: END }),
        }
      return hubs === 0
        ? { status: 403, body: errorXml('ExpiredToken') }
        : { body: credentialsXml({ action: 'AssumeRole', accessKeyId: FROM.assumed, expiration: END }) }
    }
    expect((await given(source, callerOf({ sub: 'bob' }))).accessKeyId).toBe(FROM.assumed)
    expect(hubs).toBe(1)
    expect(signer(rig.sts.headers.length - 1)).toBe('ASIATHEHUBAGAIN00001')
  })
})

describe('signAs: service', () => {
  test('signs with the identity as it is, for anonymous callers too, and asks STS nothing', async () => {
    const { source } = sourceOf({ source: { ...AMBIENT, signAs: 'service' } })
    const credential = (await source.obtain(ANONYMOUS)) as AwsCredential
    expect(credential).toMatchObject({ accessKeyId: FROM.environment, sessionToken: undefined })
    expect(source.obtain(callerOf({ sub: 'ada' }))).toBe(credential)
    expect(rig.sts.calls).toEqual([])
  })

  test('without roles it is what a source of type ambient means', async () => {
    const { source } = sourceOf({ source: AMBIENT })
    expect(((await source.obtain(ANONYMOUS)) as AwsCredential).accessKeyId).toBe(FROM.environment)
  })

  test('keys that a backend refuses are looked for again', async () => {
    const { source, clock } = sourceOf({ source: { type: 'ambient', chain: ['profile'], profile: 'static' } })
    const credential = (await source.obtain(ANONYMOUS)) as AwsCredential
    clock.nowMs += 60_000
    expect(await source.reject(ANONYMOUS, credential)).toBe(false)
  })

  test('two configs with the same source have one identity', async () => {
    const { source, deps } = sourceOf({ source: { type: 'ambient', chain: ['instance'], signAs: 'service' } })
    await source.obtain(ANONYMOUS)
    const before = rig.metadata.asked.length
    const other = asked(
      createSource(authOf({ source: { type: 'ambient', chain: ['instance'] }, service: 's3' }) as never, deps),
    )
    expect(other.obtain(ANONYMOUS)).toMatchObject({ accessKeyId: FROM.container, service: 's3' })
    expect(rig.metadata.asked).toHaveLength(before)
  })
})
