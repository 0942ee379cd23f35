import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { CONTAINER_PATH, type LabMetadata, startLabMetadata } from '../lab/metadata.ts'
import { after, type AwsCredential, monotonicNow, Secret } from '../src/core/index.ts'
import { createServiceSource, createCloudStsSource, identityFor } from '../src/obtain/index.ts'
import { type AmbientName, chainOf } from '../src/resources/index.ts'
import { freePort } from '../lab/free-port.ts'
import { untilListening } from './moto.ts'
import type { Python } from './python.ts'
import { callerWith, clock, environmentOnly, portsFor, REGION, specOf } from './sources.ts'

/** Issuer of keys by their ids; keys of STS have other ids. */
const KEYS = { environment: 'AKIAENVIRONMENT00001', profile: 'AKIAPROFILE000000001', metadata: 'ASIAMETADATA00000001' }
const ROLE = 'arn:aws:iam::123456789012:role/reader'
const TOKEN = 'the-token-of-the-pod'

/**
 * The identity of the process in the places where botocore looks for it, and roles that it assumes for callers at moto's STS:
 * with tags, source identity, policy and external id. Gives what was not as it should be, and how many places were compared.
 */
export async function askAws(python: Python): Promise<{ readonly wrong: readonly string[]; readonly places: number }> {
  const port = await freePort()
  const server = spawn(path.join(python.scripts, 'moto_server'), ['-H', '127.0.0.1', '-p', String(port)], {
    stdio: 'ignore',
  })
  const directory = mkdtempSync(path.join(tmpdir(), 'extauth-aws-'))
  const before = { ...process.env }
  let metadata: LabMetadata | undefined
  try {
    await untilListening(port)
    const endpoint = `http://127.0.0.1:${port}`
    const keys = { secretAccessKey: 'secret', sessionToken: 'token', expiresAtMs: Date.now() + 3_600_000 }
    metadata = await startLabMetadata({
      port: 0,
      roleName: 'node',
      containerToken: TOKEN,
      credentials: () => ({ accessKeyId: KEYS.metadata, ...keys }),
    })
    const rows = environments(directory, endpoint, metadata.url)
    const theirs = await botocoreKeys(python, rows)
    const wrong: string[] = []
    for (const [index, env] of rows.entries()) {
      const ours = await ourKey(env, endpoint)
      if (ours !== theirs[index]) wrong.push(`place ${index + 1}: botocore has ${theirs[index]}, we have ${ours}`)
    }
    wrong.push(...(await assumed(endpoint)))
    return { wrong, places: rows.length }
  } finally {
    Object.assign(process.env, before)
    server.kill()
    await metadata?.close()
    rmSync(directory, { recursive: true, force: true })
  }
}

type Env = Readonly<Record<string, string>>

/** Each with what is in it alone, and some with several, of which the first counts. */
function environments(directory: string, sts: string, metadata: string): readonly Env[] {
  const file = (name: string, text: string): string => {
    const at = path.join(directory, name)
    writeFileSync(at, text)
    return at
  }
  const base = {
    AWS_REGION: REGION,
    AWS_DEFAULT_REGION: REGION,
    AWS_ENDPOINT_URL_STS: sts,
    AWS_CONFIG_FILE: file('config', `[profile chained]\nrole_arn = ${ROLE}\nsource_profile = static\n`),
    AWS_SHARED_CREDENTIALS_FILE: file(
      'credentials',
      `[static]\naws_access_key_id = ${KEYS.profile}\naws_secret_access_key = secret\n`,
    ),
    AWS_EC2_METADATA_SERVICE_ENDPOINT: metadata,
    AWS_METADATA_SERVICE_NUM_ATTEMPTS: '1',
  }
  const environment = { AWS_ACCESS_KEY_ID: KEYS.environment, AWS_SECRET_ACCESS_KEY: 'secret' }
  const web = {
    AWS_WEB_IDENTITY_TOKEN_FILE: file('token', 'eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbGljZSJ9.c2ln'),
    AWS_ROLE_ARN: ROLE,
    AWS_ROLE_SESSION_NAME: 'pod',
  }
  const container = {
    AWS_CONTAINER_CREDENTIALS_FULL_URI: metadata + CONTAINER_PATH,
    AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: file('pod-token', TOKEN),
  }
  const wrongToken = { ...container, AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: file('other-token', 'another') }
  const off = { AWS_EC2_METADATA_DISABLED: 'true' }
  const one: readonly Env[] = [
    environment,
    web,
    container,
    {},
    off,
    { AWS_PROFILE: 'static' },
    { AWS_PROFILE: 'chained' },
    wrongToken,
  ]
  const several: readonly Env[] = [
    { ...environment, ...web },
    { ...environment, ...container },
    { ...web, ...container },
    { ...off, ...web },
    { ...off, ...container },
  ]
  return [...one, ...several].map((each) => Object.assign({}, base, each))
}

const SCRIPT = `
import json, os, sys
import botocore.session
found = []
for env in json.load(sys.stdin):
    for name in [each for each in os.environ if each.startswith('AWS_')]:
        del os.environ[name]
    os.environ.update(env)
    try:
        keys = botocore.session.Session().get_credentials()
        found.append(keys.get_frozen_credentials().access_key if keys else 'none')
    except Exception:
        found.append('none')
print(json.dumps(found))
`

/** Owner of keys: ids of STS keys are not known in advance. */
const named = (accessKeyId: string): string =>
  accessKeyId === 'none' ? 'none' : (Object.entries(KEYS).find(([, id]) => id === accessKeyId)?.[0] ?? 'STS')

/** The metadata service that it asks is in this process, which must not wait for it. */
async function botocoreKeys({ executable }: Python, rows: readonly Env[]): Promise<readonly string[]> {
  const run = spawn(executable, ['-c', SCRIPT], { timeout: 60_000 })
  const read = Promise.all([text(run.stdout), text(run.stderr), once(run, 'close')])
  run.stdin.end(JSON.stringify(rows))
  const [out, err] = await read
  if (run.exitCode !== 0) throw new Error(`botocore does not run: ${err.slice(-300)}`)
  return (JSON.parse(out) as string[]).map(named)
}

async function ourKey(env: Env, endpoint: string): Promise<string> {
  environmentOnly(env)
  const chain: AmbientName[] = [...chainOf({})]
  chain.splice(1, 0, 'profile')
  const ports = portsFor(env, endpoint)
  try {
    const source = createServiceSource({ spec: specOf({ source: { type: 'ambient', chain } }) }, ports)
    const credential = (await source.obtain({ kind: 'anonymous' } as never, () => new Secret('none'))) as AwsCredential
    return named(credential.accessKeyId)
  } catch {
    return 'none'
  } finally {
    await ports.identities.release()
  }
}

/** A role with everything that AssumeRole takes, and whom moto takes its holder for. */
async function assumed(endpoint: string): Promise<readonly string[]> {
  const env = { AWS_ACCESS_KEY_ID: KEYS.environment, AWS_SECRET_ACCESS_KEY: 'secret' }
  Object.assign(process.env, env)
  const ports = portsFor(env, endpoint)
  const source = { type: 'ambient' as const, chain: ['environment' as const] }
  const config = specOf({
    source,
    externalId: 'of-us',
    fallbackRoleArn: ROLE,
    sourceIdentity: 'claims.email',
    sessionTags: [{ key: 'Team', value: 'claims.team', transitive: true }],
    sessionPolicy: '{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"s3:*","Resource":"*"}]}',
    policyArns: ['arn:aws:iam::aws:policy/ReadOnlyAccess'],
  })
  const auth = { name: 'a', namespace: 'default', spec: config }
  const caller = callerWith({ sub: 'alice', team: 'search', email: 'alice@example.com' })
  const sts = createCloudStsSource(auth, ports)
  try {
    const { credential, expiresAtMs } = await sts.fetch(
      caller,
      sts.plan(caller),
      after(monotonicNow(), 10_000),
      new Secret('opaque'),
    )
    const who = await identityFor(config, source, ports).who(credential as AwsCredential)
    const wrong: string[] = []
    if (who !== 'arn:aws:sts::123456789012:assumed-role/reader/alice') wrong.push(`moto takes the holder for ${who}`)
    const lifetimeS = (expiresAtMs - clock.now()) / 1_000
    if (!(lifetimeS > 800 && lifetimeS <= 901)) wrong.push(`credentials for ${lifetimeS} s`)
    return wrong
  } finally {
    await sts.close?.()
    await ports.identities.release()
  }
}
