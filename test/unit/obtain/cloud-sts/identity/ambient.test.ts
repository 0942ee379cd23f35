import { fromNodeProviderChain } from '@aws-sdk/credential-providers'
import { createHash } from 'node:crypto'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { Failure } from '../../../../../src/core/index.ts'
import { createOutbound } from '../../../../../src/net/index.ts'
import { createAmbient } from '../../../../../src/obtain/cloud-sts/identity/ambient.ts'
import { MOST_METADATA_BYTES, NEXT_DOOR_MS } from '../../../../../src/obtain/cloud-sts/identity/metadata.ts'
import { createRoleAssumers } from '../../../../../src/obtain/cloud-sts/identity/role-assumers.ts'
import type { AmbientSpec } from '../../../../../src/resources/index.ts'
import { countingMetrics } from '../../../../support/obtain/cloud-sts/support/deps.ts'
import { errorXml } from '../../../../support/obtain/cloud-sts/support/sts-double.ts'
import { END_MS, FROM, type Rig, startRig } from '../../../../support/obtain/cloud-sts/identity/rig.ts'

let rig: Rig
let answer: Rig['sts']['answer']
beforeAll(async () => {
  rig = await startRig()
  answer = rig.sts.answer
})
afterAll(() => rig.close())
afterEach(() => {
  rig.sts.answer = answer
  rig.metadata.fault = 'none'
  rig.metadata.asked.length = 0
})

const clock = { now: () => Date.now() }
const nothing = () => undefined
const QUIET = { debug: nothing, info: nothing, warn: nothing, error: nothing }
function ambient(spec: AmbientSpec, env: Readonly<Record<string, string>>) {
  const { metrics } = countingMetrics()
  const outbound = createOutbound({ name: 'test', clock, metrics, breaker: false })
  const assumers = createRoleAssumers({ region: 'eu-central-1', endpoint: rig.sts.url, outbound }, clock.now)
  const limits = { deadlineMs: NEXT_DOOR_MS, maxBytes: MOST_METADATA_BYTES }
  const metadata = createOutbound({
    name: 'metadata',
    clock,
    metrics,
    breaker: false,
    bypassEgressProxy: true,
    ...limits,
  })
  const sso = createOutbound({ name: 'sso', clock, metrics, breaker: false })
  return createAmbient(spec, { env, assumers, metadata, sso })
}
const keyOf = (spec: AmbientSpec, env: Readonly<Record<string, string>>) =>
  ambient(spec, env)
    .fetch()
    .then(({ accessKeyId }) => accessKeyId)

const ENVIRONMENT = { AWS_ACCESS_KEY_ID: FROM.environment, AWS_SECRET_ACCESS_KEY: 'secret' }
const webIdentity = () => ({ AWS_WEB_IDENTITY_TOKEN_FILE: rig.file('token'), AWS_ROLE_ARN: 'arn:aws:iam::1:role/pod' })
const container = (token = 'pod-token') => ({
  AWS_CONTAINER_CREDENTIALS_FULL_URI: `${rig.metadata.url}/v1/credentials`,
  AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: rig.file(token),
})

describe('an identity of the process', () => {
  test('comes from the place that is named', async () => {
    const env = rig.environment({ ...ENVIRONMENT, ...webIdentity(), ...container() })
    expect(await keyOf({ chain: ['environment'] }, env)).toBe(FROM.environment)
    expect(await keyOf({ chain: ['webIdentityFile'] }, env)).toBe(FROM.webIdentity)
    expect(await keyOf({ chain: ['podIdentity'] }, env)).toBe(FROM.container)
    expect(await keyOf({ chain: ['container'] }, env)).toBe(FROM.container)
    expect(await keyOf({ chain: ['instance'] }, env)).toBe(FROM.container)
    expect(await keyOf({ chain: ['profile'], profile: 'static' }, env)).toBe(FROM.profile)
    expect(await keyOf({ chain: ['profile'], profile: 'chained' }, env)).toBe(FROM.assumed)
    expect(await keyOf({ chain: ['profile'], profile: 'with-token' }, env)).toBe(FROM.webIdentity)
  })

  test('comes from the first of the chain that is there, and from no place that is not named', async () => {
    const env = rig.environment({ ...webIdentity(), ...container() })
    expect(await keyOf({ chain: ['environment', 'podIdentity', 'webIdentityFile'] }, env)).toBe(FROM.container)
    expect(await keyOf({}, env)).toBe(FROM.webIdentity)
    await expect(keyOf({ chain: ['environment'] }, env)).rejects.toMatchObject({
      code: 'aws_identity_unavailable',
      detail: 'no credentials in environment',
    })
  })

  test('speaks version 2 of the metadata service only', async () => {
    const env = rig.environment({})
    await keyOf({ chain: ['instance'] }, env)
    expect(rig.metadata.asked).toEqual([
      'PUT /latest/api/token 200',
      'GET /latest/meta-data/iam/security-credentials/ 200',
      'GET /latest/meta-data/iam/security-credentials/node 200',
    ])
  })

  test('a metadata service that knows the old version only is none', async () => {
    const asked: string[] = []
    const old = createServer(({ method, url = '' }, response) => {
      asked.push(`${method} ${url}`)
      const isCredentials = url.endsWith('/node')
      const keys = { AccessKeyId: FROM.container, SecretAccessKey: 's', Token: 't', Expiration: '2039-01-01T00:00:00Z' }
      response
        .writeHead(method === 'PUT' ? 404 : 200)
        .end(isCredentials ? JSON.stringify({ Code: 'Success', ...keys }) : 'node')
    })
    await new Promise<void>((resolve) => old.listen(0, '127.0.0.1', resolve))
    const { port } = old.address() as AddressInfo
    const env = rig.environment({ AWS_EC2_METADATA_SERVICE_ENDPOINT: `http://127.0.0.1:${port}` })
    await expect(keyOf({ chain: ['instance'] }, env)).rejects.toMatchObject({ code: 'aws_identity_unavailable' })
    expect(asked).toEqual(['PUT /latest/api/token'])
    await new Promise((resolve) => old.close(resolve))
  })

  test.each(['throttled', 'broken', 'silent'] as const)(
    'a metadata service that is %s gives none, and is asked as before when it is well',
    async (fault) => {
      const one = ambient({ chain: ['instance'] }, rig.environment({}))
      rig.metadata.fault = fault
      await expect(one.fetch()).rejects.toMatchObject({ code: 'aws_identity_unavailable' })
      rig.metadata.fault = 'none'
      rig.metadata.asked.length = 0
      expect((await one.fetch()).accessKeyId).toBe(FROM.container)
      expect(rig.metadata.asked[0]).toBe('PUT /latest/api/token 200')
    },
  )

  test('a configured source that fails ends the chain: later ones are another identity', async () => {
    const env = rig.environment({ ...webIdentity(), ...container('wrong-token') })
    await expect(keyOf({ chain: ['container', 'instance'] }, env)).rejects.toMatchObject({
      code: 'aws_identity_unavailable',
      detail: expect.stringMatching(/^container: /),
    })
    rig.sts.answer = () => ({ status: 403, body: errorXml('AccessDenied') })
    await expect(keyOf({ chain: ['webIdentityFile', 'instance'] }, env)).rejects.toMatchObject({ code: 'config_error' })
    const gone = { ...env, AWS_WEB_IDENTITY_TOKEN_FILE: rig.file('nothing') }
    rig.environment(gone)
    await expect(keyOf({ chain: ['webIdentityFile', 'instance'] }, gone)).rejects.toMatchObject({
      code: 'aws_identity_unavailable',
      detail: `webIdentityFile: its token file "${rig.file('nothing')}" (AWS_WEB_IDENTITY_TOKEN_FILE) is missing`,
    })
    expect(rig.metadata.asked.filter((line) => line.includes('meta-data'))).toEqual([])
  })

  test('a place that has answered is the only one after', async () => {
    const one = ambient({ chain: ['instance', 'profile'], profile: 'static' }, rig.environment({}))
    expect((await one.fetch()).accessKeyId).toBe(FROM.container)
    expect(one.answered).toBe('instance')
    rig.metadata.fault = 'broken'
    await expect(one.fetch()).rejects.toMatchObject({ detail: expect.stringMatching(/^instance: /) })
  })

  test.each(['sso', 'session', 'over-sso'])('the profile %s needs a login in the browser', async (profile) => {
    const env = rig.environment({ HOME: rig.directory })
    await expect(keyOf({ chain: ['profile'], profile }, env)).rejects.toMatchObject({
      code: 'aws_identity_unavailable',
      detail: expect.stringMatching(/aws configure export-credentials --profile \w+ --format env/),
    })
  })

  test.each(['sso-current', 'over-sso-current'])(
    'the profile %s uses the session that a login left',
    async (profile) => {
      const cache = path.join(rig.directory, '.aws/sso/cache')
      await mkdir(cache, { recursive: true })
      const expiresAt = new Date(Date.now() + 3_600_000).toISOString()
      const session = createHash('sha1').update('here').digest('hex')
      await writeFile(path.join(cache, `${session}.json`), JSON.stringify({ accessToken: 'of-sso', expiresAt }))
      const shown: unknown[] = []
      const portal = createServer(({ url, headers }, response) => {
        shown.push([url, headers['x-amz-sso_bearer_token']])
        const roleCredentials = { accessKeyId: FROM.sso, secretAccessKey: 's', sessionToken: 't', expiration: END_MS }
        response.setHeader('content-type', 'application/json').end(JSON.stringify({ roleCredentials }))
      })
      await new Promise<void>((resolve) => portal.listen(0, '127.0.0.1', resolve))
      const { port } = portal.address() as AddressInfo
      const env = rig.environment({ HOME: rig.directory, AWS_ENDPOINT_URL_SSO: `http://127.0.0.1:${port}` })
      const isChained = profile.startsWith('over')
      expect(await keyOf({ chain: ['profile'], profile }, env)).toBe(isChained ? FROM.assumed : FROM.sso)
      expect(shown).toEqual([['/federation/credentials?role_name=dev&account_id=123456789012', 'of-sso']])
      await new Promise((resolve) => portal.close(resolve))
    },
  )

  const broken: readonly (readonly [profile: string, reason: RegExp])[] = [
    ['nothing', /^profile: "nothing" of CONFIG and CREDENTIALS: is not there$/],
    ['empty', /^profile: "empty" of CONFIG: has no credentials; expected one of /],
    ['half', /^profile: "half" of CONFIG: has aws_access_key_id and no aws_secret_access_key$/],
    ['over-half', /^profile: "half" of CONFIG, the source of "over-half": has aws_access_key_id and no /],
    ['over-nothing', /^profile: "nothing" of CONFIG and CREDENTIALS, the source of "over-nothing": is not there$/],
    ['role-alone', /^profile: "role-alone" of CONFIG: has role_arn; expected source_profile, /],
    ['two-sources', /^profile: "two-sources" of CONFIG: has both source_profile and credential_source/],
    ['circle', /^profile: "round" of CONFIG, the source of "circle": its source_profile "circle" forms a cycle$/],
    ['mfa', /^profile: "mfa" of CONFIG: requires an MFA code \(mfa_serial\)/],
    ['unknown-source', /^profile: "unknown-source" of CONFIG: its credential_source is "Somewhere"; expected /],
    ['from-environment', /^profile: "from-environment" of CONFIG: expected AWS_ACCESS_KEY_ID and AWS_SECRET_/],
    [
      'no-token',
      /^profile: "no-token" of CONFIG: its token file "\/nothing\/token" \(web_identity_token_file\) is missing$/,
    ],
    ['process-fails', /^profile: "process-fails" of CONFIG: its credential_process ended with code 3$/],
    ['process-text', /^profile: "process-text" of CONFIG: its credential_process did not print a JSON object$/],
    ['process-floods', /^profile: "process-floods" of CONFIG: its credential_process printed more than 65536 bytes$/],
    ['sso-no-session', /^profile: "sso-no-session" of CONFIG: its sso_session "gone" does not exist$/],
    ['sso-half', /^profile: "sso-half" of CONFIG: has SSO and no sso_account_id$/],
  ]
  describe.each(['configuration', 'AWS_PROFILE', 'AWS_PROFILE without a chain'] as const)('a profile of %s', (by) => {
    test.each(broken)('%s ends the chain, with its file and the step that fails', async (profile, reason) => {
      const chain = ['profile', 'instance'] as const
      const env = rig.environment(by === 'configuration' ? {} : { AWS_PROFILE: profile })
      const spec = by === 'configuration' ? { chain, profile } : by === 'AWS_PROFILE' ? { chain } : {}
      const error: unknown = await keyOf(spec, env).catch((thrown: unknown) => thrown)
      expect(error).toMatchObject({ code: 'aws_identity_unavailable' })
      const detail = error instanceof Failure ? (error.detail ?? '') : ''
      expect(detail.replace(rig.file('config'), 'CONFIG').replace(rig.file('credentials'), 'CREDENTIALS')).toMatch(
        reason,
      )
      expect(detail).not.toMatch(/secret-output/)
      expect(rig.metadata.asked).toEqual([])
    })
  })

  test('a refusal of STS names the profile', async () => {
    rig.sts.answer = () => ({ status: 403, body: errorXml('AccessDenied') })
    await expect(keyOf({ chain: ['profile'], profile: 'chained' }, rig.environment({}))).rejects.toMatchObject({
      code: 'config_error',
      detail: `profile: "chained" of ${rig.file('config')}: STS answered 403 AccessDenied`,
    })
  })

  test('a default profile without credentials is passed over, a broken one is not', async () => {
    const chain = ['profile', 'instance'] as const
    expect(await keyOf({ chain }, rig.environment({}))).toBe(FROM.container)
    await writeFile(rig.file('broken'), '[default]\naws_access_key_id = AKIAHALFHALFHALF0001\n')
    rig.metadata.asked.length = 0
    await expect(keyOf({ chain }, rig.environment({ AWS_CONFIG_FILE: rig.file('broken') }))).rejects.toMatchObject({
      detail: `profile: "default" of ${rig.file('broken')}: has aws_access_key_id and no aws_secret_access_key`,
    })
    await expect(keyOf({ chain }, rig.environment({ AWS_CONFIG_FILE: rig.file('none') }))).rejects.toMatchObject({
      detail: `profile: the AWS configuration file "${rig.file('none')}" (AWS_CONFIG_FILE) is missing`,
    })
    expect(rig.metadata.asked).toEqual([])
  })

  test('half of a pair of variables ends the chain', async () => {
    const chain = ['environment', 'webIdentityFile', 'podIdentity', 'container', 'instance'] as const
    const halves = {
      AWS_ACCESS_KEY_ID: 'environment: AWS_ACCESS_KEY_ID is set; expected AWS_SECRET_ACCESS_KEY as well',
      AWS_SECRET_ACCESS_KEY: 'environment: AWS_SECRET_ACCESS_KEY is set; expected AWS_ACCESS_KEY_ID as well',
      AWS_WEB_IDENTITY_TOKEN_FILE: 'webIdentityFile: AWS_WEB_IDENTITY_TOKEN_FILE is set; expected AWS_ROLE_ARN as well',
      AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: expect.stringMatching(
        /^podIdentity: .*AWS_CONTAINER_CREDENTIALS_FULL_URI as/,
      ),
      AWS_CONTAINER_AUTHORIZATION_TOKEN: expect.stringMatching(/^container: .*AWS_CONTAINER_CREDENTIALS_FULL_URI as/),
    }
    for (const [name, detail] of Object.entries(halves)) {
      await expect(keyOf({ chain }, rig.environment({ [name]: rig.file('token') }))).rejects.toMatchObject({ detail })
    }
    expect(rig.metadata.asked).toEqual([])
  })

  test('a credential_process gives keys, and one that hangs is killed with what it has started', async () => {
    const env = rig.environment({})
    expect(await keyOf({ chain: ['profile'], profile: 'process' }, env)).toBe(FROM.process)
    await expect(keyOf({ chain: ['profile'], profile: 'process-hangs' }, env)).rejects.toMatchObject({
      detail: expect.stringMatching(/"process-hangs" of .* its credential_process timed out and was killed$/),
    })
    const pid = Number(await readFile(rig.file('pid'), 'utf8'))
    await vi.waitFor(() => expect(() => process.kill(pid, 0)).toThrow(/ESRCH/), 5_000)
  }, 30_000)

  test.each(['of-instance', 'of-container', 'over-instance'])(
    'the profile %s, whose keys are of a metadata service, is none: these have places of their own',
    async (profile) => {
      await expect(keyOf({ chain: ['profile'], profile }, rig.environment({}))).rejects.toMatchObject({
        code: 'aws_identity_unavailable',
        detail: expect.stringMatching(/"instance" or "container" in chain/),
      })
      expect(rig.metadata.asked).toEqual([])
    },
  )

  test('an instance without metadata service is not asked', async () => {
    const env = rig.environment({ AWS_EC2_METADATA_DISABLED: 'true' })
    await expect(keyOf({ chain: ['instance'] }, env)).rejects.toMatchObject({
      detail: 'no credentials in instance',
    })
    expect(rig.metadata.asked).toEqual([])
  })

  test('no failure says a key, a token or a text of the service', async () => {
    const env = rig.environment({ ...container('wrong-token') })
    const error: unknown = await keyOf({ chain: ['podIdentity'] }, env).catch((thrown: unknown) => thrown)
    expect(String(error)).not.toMatch(/another|AccessDenied|the-token/)
  })
})

describe('the same as the chain of the AWS SDK', () => {
  type Env = Readonly<Record<string, string>>
  const keys: Readonly<Record<string, Env>> = {
    'no keys': {},
    'half a pair': { AWS_ACCESS_KEY_ID: FROM.environment },
    keys: ENVIRONMENT,
    'keys with a token': { ...ENVIRONMENT, AWS_SESSION_TOKEN: 'token' },
  }
  const profiles: Readonly<Record<string, Env>> = {
    'no profile': {},
    'a static profile': { AWS_PROFILE: 'static' },
    'a profile with a role': { AWS_PROFILE: 'chained' },
    'a profile that is not there': { AWS_PROFILE: 'missing' },
    'a profile without credentials': { AWS_PROFILE: 'empty' },
  }
  const tokens: Readonly<Record<string, () => Env>> = {
    'no token file': () => ({}),
    'a token file': webIdentity,
    'a token file that is gone': () => ({ ...webIdentity(), AWS_WEB_IDENTITY_TOKEN_FILE: rig.file('gone') }),
    'a token file without role': () => ({ AWS_WEB_IDENTITY_TOKEN_FILE: rig.file('token') }),
  }
  const remotes: Readonly<Record<string, () => Env>> = {
    'no metadata': () => ({ AWS_EC2_METADATA_DISABLED: 'true' }),
    'an instance': () => ({}),
    'a container': container,
  }
  const rows = Object.entries(keys).flatMap(([a, one]) =>
    Object.entries(profiles).flatMap(([b, two]) =>
      Object.entries(tokens).flatMap(([c, three]) =>
        Object.entries(remotes).map(([d, four]) => [`${a}, ${b}, ${c}, ${d}`, one, two, three, four] as const),
      ),
    ),
  )

  test.each(rows)('%s', async (_name, one, two, three, four) => {
    const env = rig.environment({ ...one, ...two, ...three(), ...four() })
    // A configured, broken source ends the chain here, as in botocore; the SDK for JavaScript takes the next source.
    const isBroken = isNamedAndBroken(env)
    const sdk = isBroken
      ? 'none'
      : await fromNodeProviderChain({ timeout: 1_000, maxRetries: 0, logger: QUIET })()
          .then(({ accessKeyId }) => accessKeyId)
          .catch(() => 'none')
    // A profile that is asked for by name goes before the variables.
    const first = env['AWS_PROFILE'] === undefined ? (['environment', 'profile'] as const) : (['profile'] as const)
    const ours = await keyOf({ chain: [...first, 'webIdentityFile', 'container', 'instance'] }, env).catch(() => 'none')
    expect(ours).toBe(sdk)
  })

  function isNamedAndBroken(env: Env): boolean {
    const { AWS_PROFILE: profile, AWS_ACCESS_KEY_ID: id, AWS_SECRET_ACCESS_KEY: secret } = env
    if (profile !== undefined) return profile === 'missing' || profile === 'empty'
    if (id !== undefined) return secret === undefined
    return env['AWS_WEB_IDENTITY_TOKEN_FILE'] !== undefined && env['AWS_ROLE_ARN'] === undefined
  }

  test('is asked in at least 60 environments', () => {
    expect(rows.length).toBeGreaterThanOrEqual(60)
  })
})
