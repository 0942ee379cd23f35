import { writeFile } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type AwsCredential, ANONYMOUS } from '../../../../src/core/index.ts'
import { type LabMetadata, startLabMetadata } from '../../../../lab/metadata.ts'
import { createSource } from '../../../../src/obtain/index.ts'
import type { CloudSts } from '../../../../src/resources/index.ts'
import { asked } from '../../../support/shown-tokens.ts'
import { type Rig, startRig } from '../../../support/obtain/cloud-sts/identity/rig.ts'
import { authOf, callerOf, depsOf } from '../../../support/obtain/cloud-sts/support/deps.ts'
import { credentialsXml, errorXml } from '../../../support/obtain/cloud-sts/support/sts-double.ts'

const MINUTE = 60_000
let rig: Rig
let metadata: LabMetadata
/** Current credentials of the metadata service, and those that STS accepts. */
let version = 1
let valid: (key: string) => boolean = () => true
let clockMs: () => number
const keyOf = (number: number) => `ASIAROTATION0000${String(number).padStart(4, '0')}`
beforeAll(async () => {
  rig = await startRig()
  metadata = await startLabMetadata({
    port: 0,
    roleName: 'node',
    credentials: () => ({
      accessKeyId: keyOf(version),
      secretAccessKey: 'secret',
      sessionToken: 'token',
      expiresAtMs: clockMs() + 60 * MINUTE,
    }),
  })
})
afterAll(() => Promise.all([metadata.close(), rig.close()]))

function start(spec: Partial<CloudSts>) {
  const env = rig.environment({ AWS_EC2_METADATA_SERVICE_ENDPOINT: metadata.url })
  const { deps, clock } = depsOf(rig.sts.url)
  clockMs = () => clock.nowMs
  rig.sts.answer = () => {
    const signer = /Credential=([^/]+)/.exec(rig.sts.headers.at(-1)?.authorization ?? '')?.[1] ?? ''
    if (!valid(signer)) return { status: 403, body: errorXml('ExpiredToken') }
    return {
      body: credentialsXml({ action: 'AssumeRole', expiration: new Date(clock.nowMs + 60 * MINUTE).toISOString() }),
    }
  }
  const secrets = { handle: () => undefined } as never
  const source = createSource(authOf(spec) as never, { ...deps, env, random: () => 0.5, secrets })
  return { source: asked(source), clock }
}
const AMBIENT = { type: 'ambient' as const, chain: ['instance' as const] }

describe('the identity of the process changes under load', () => {
  test('no request fails, neither before its expiry nor when AWS stops accepting it', async () => {
    const { source, clock } = start({ source: AMBIENT, fallbackRoleArn: 'arn:aws:iam::123456789012:role/reader' })
    let failed = 0
    let caller = 0
    const burst = async () => {
      const calls = Array.from({ length: 100 }, async () => source.obtain(callerOf({ sub: `user-${caller++}` })))
      failed += (await Promise.allSettled(calls)).filter(({ status }) => status === 'rejected').length
    }
    for (let round = 0; round < 12; round++) {
      await burst()
      // The service rotates at once; the old keys stay valid for a while, except every third time.
      version++
      const oldest = round % 3 === 2 ? version : version - 3
      valid = (key) => Number(key.slice(-4)) >= oldest
      clock.nowMs += 7 * MINUTE
    }
    expect(failed).toBe(0)
    valid = () => true
  })

  test.each(['throttled', 'broken', 'silent'] as const)(
    'a metadata service that is %s has no effect until its credentials expire',
    async (fault) => {
      const { source, clock } = start({ source: AMBIENT })
      const credential = (await source.obtain(ANONYMOUS)) as AwsCredential
      metadata.fault = fault
      clock.nowMs += 56 * MINUTE
      for (let round = 0; round < 20; round++) expect(source.obtain(ANONYMOUS)).toBe(credential)
      clock.nowMs += 4 * MINUTE
      await expect((async () => source.obtain(ANONYMOUS))()).rejects.toMatchObject({
        code: 'aws_identity_unavailable',
        status: 503,
      })
      metadata.fault = 'none'
      clock.nowMs += MINUTE
      version++
      expect(((await source.obtain(ANONYMOUS)) as AwsCredential).accessKeyId).toBe(keyOf(version))
    },
  )
})

test('keys of a profile that were rotated are read again when a backend refuses the old ones', async () => {
  const { source, clock } = start({ source: { type: 'ambient', chain: ['profile'], profile: 'rotated' } })
  const write = (id: string) =>
    writeFile(rig.file('credentials'), `[rotated]\naws_access_key_id = ${id}\naws_secret_access_key = s\n`)
  await write('AKIAROTATEDBEFORE001')
  const before = (await source.obtain(ANONYMOUS)) as AwsCredential
  await write('AKIAROTATEDAFTER0001')
  clock.nowMs += 2 * MINUTE
  expect(source.obtain(ANONYMOUS)).toBe(before)
  expect(await source.reject?.(ANONYMOUS, before)).toBe(true)
  expect(((await source.obtain(ANONYMOUS)) as AwsCredential).accessKeyId).toBe('AKIAROTATEDAFTER0001')
})

const ROLE = 'arn:aws:iam::123456789012:role/reader'
test.each([
  ['the process', { source: AMBIENT, fallbackRoleArn: ROLE }],
  ['a hub', { source: { type: 'role', through: { roleArn: ROLE, source: AMBIENT } }, fallbackRoleArn: ROLE } as const],
])('after a long outage of the metadata service roles of %s are served within 2 s', async (_name, spec) => {
  const { source, clock } = start(spec)
  metadata.fault = 'broken'
  const isServed = (sub: string) =>
    Promise.resolve()
      .then(() => source.obtain(callerOf({ sub })))
      .then(
        () => true,
        () => false,
      )
  for (let second = 0; second < 120; second++) {
    for (const sub of ['ada', 'eve']) expect(await isServed(sub)).toBe(false)
    clock.nowMs += 1_000
  }
  metadata.fault = 'none'
  const waited = { ada: 0, eve: 0 }
  for (const sub of ['ada', 'eve'] as const) {
    while (!(await isServed(sub))) {
      clock.nowMs += 100
      waited[sub] += 100
    }
  }
  expect(Math.max(waited.ada, waited.eve)).toBeLessThanOrEqual(2_000)
})
