import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import {
  ANONYMOUS,
  type Answering,
  documents,
  identityProvider,
  mcp,
  oauth,
  openFolder,
  site,
  stsError,
} from '../../../support/examine/check/rig.ts'

const folders: Awaited<ReturnType<typeof openFolder>>[] = []
const sites: { close(): Promise<void> }[] = []
let idp: Awaited<ReturnType<typeof identityProvider>>
const KEYS = { AWS_ACCESS_KEY_ID: 'AKIAENVIRONMENT00001', AWS_SECRET_ACCESS_KEY: 'do-not-print' }
beforeAll(async () => {
  idp = await identityProvider()
  for (const name of Object.keys(process.env).filter((each) => each.startsWith('AWS_'))) vi.stubEnv(name, undefined)
  for (const [name, value] of Object.entries(KEYS)) vi.stubEnv(name, value)
})
afterEach(() =>
  Promise.all(
    [...sites.splice(0), ...folders.splice(0).map(({ remove }) => ({ close: remove }))].map((each) => each.close()),
  ),
)
afterAll(async () => {
  vi.unstubAllEnvs()
  await idp.close()
})

const ROLE = 'arn:aws:iam::123456789012:role/reader'
const HUB = 'arn:aws:iam::123456789012:role/hub'
const NAMESPACE = 'https://sts.amazonaws.com/doc/2011-06-15/'
const ANSWER = (action: string, result: string) => ({
  headers: { 'content-type': 'text/xml' },
  body: `<${action}Response xmlns="${NAMESPACE}"><${action}Result>${result}</${action}Result><ResponseMetadata><RequestId>r</RequestId></ResponseMetadata></${action}Response>`,
})
/** STS that says by the key id who signed. */
const sts =
  (refused?: string): Answering =>
  ({ method, headers }, body) => {
    if (method === 'GET') return { status: 302 }
    const form = new URLSearchParams(body)
    const signer = /Credential=([^/]+)/.exec(headers.authorization ?? '')?.[1] ?? 'nobody'
    const role = form.get('RoleArn') ?? ''
    if (role !== '' && role === refused) return stsError('AccessDenied')
    if (form.get('Action') === 'GetCallerIdentity')
      return ANSWER('GetCallerIdentity', `<Arn>arn:aws:sts::1:is/${signer}</Arn><UserId>u</UserId><Account>1</Account>`)
    const id = role === HUB ? 'ASIATHEHUBTHEHUB0001' : 'ASIAREADERREADER0001'
    const end = new Date(Date.now() + 3_600_000).toISOString()
    return ANSWER(
      'AssumeRole',
      `<Credentials><AccessKeyId>${id}</AccessKeyId><SecretAccessKey>secret</SecretAccessKey><SessionToken>session</SessionToken><Expiration>${end}</Expiration></Credentials>`,
    )
  }

async function check(spec: object, options: { refused?: string; token?: string; route?: object } = {}) {
  const folder = await openFolder()
  folders.push(folder)
  const service = await site({ '/': sts(options.refused), '/mcp': mcp() })
  sites.push(service)
  const config = { type: 'cloudSts', cloudSts: { region: 'eu-west-1', stsEndpoint: service.url, ...spec } }
  await folder.write(
    'proxy.yaml',
    documents({ target: `${service.url}/mcp` }, config, {
      auth: options.token === undefined ? ANONYMOUS : oauth(idp.url),
    }),
  )
  const run = await folder.checkIn(KEYS, options.token)
  expect(run.out + run.err).not.toContain('do-not-print')
  return { ...run, line: (name: string) => run.checks.find(({ check: each }) => each === name) }
}
const AMBIENT = { type: 'ambient', chain: ['environment'] }

describe('extauth check of an identity of the process', () => {
  it('says which place answered, whose it is and how long it lives, and asks the backend with it', async () => {
    const { line, code } = await check({ source: AMBIENT })
    expect(line('identity')).toMatchObject({
      status: 'ok',
      detail: 'environment: arn:aws:sts::1:is/AKIAENVIRONMENT00001, no expiry',
    })
    expect(line('mcp')).toMatchObject({ status: 'ok' })
    expect(code).toBe(0)
  })

  it('asks before and after each hop, and names the tags that were accepted', async () => {
    const spec = {
      source: { type: 'role', through: { roleArn: HUB, source: AMBIENT } },
      roleMappings: [
        {
          claim: 'readers',
          roleArn: ROLE,
          sessionTags: [
            { key: 'Who', value: 'claims.sub' },
            { key: 'Kind', value: '"x"' },
          ],
          sourceIdentity: '"the-caller"',
          sessionPolicy: { document: { Statement: [] } },
          policyArns: ['arn:aws:iam::aws:policy/A'],
        },
      ],
      sessionDuration: 900,
    }
    const { line, code } = await check(spec, { token: await idp.token() })
    expect(line('identity')).toMatchObject({ status: 'ok' })
    expect(line('hub')).toMatchObject({
      status: 'ok',
      subject: HUB,
      detail: 'arn:aws:sts::1:is/ASIATHEHUBTHEHUB0001, valid for 60 min',
    })
    expect(line('assume-role')?.detail).toBe(
      'STS returned credentials of arn:aws:sts::1:is/ASIAREADERREADER0001 for 15 min, with tags Who, Kind; a source identity; a session policy; arn:aws:iam::aws:policy/A',
    )
    expect(code).toBe(0)
  })

  it('names the hop that is refused', async () => {
    const spec = { source: { type: 'role', through: { roleArn: HUB, source: AMBIENT } }, fallbackRoleArn: ROLE }
    const { line, code } = await check(spec, { token: await idp.token(), refused: HUB })
    expect(line('identity')).toMatchObject({ status: 'ok' })
    expect(line('hub')).toMatchObject({
      status: 'failed',
      subject: HUB,
      detail: expect.stringMatching(/^config_error: .*AccessDenied/),
    })
    expect(line('assume-role')).toMatchObject({
      status: 'skipped',
      detail: 'not tried: it needs the role of the hub, which failed',
    })
    expect(code).toBe(1)
  })

  it('says that no place has one', async () => {
    const { line, code } = await check({ source: { type: 'ambient', chain: ['container'] } })
    expect(line('identity')).toMatchObject({
      status: 'failed',
      detail: 'aws_identity_unavailable: no credentials in container',
      remedy: expect.stringMatching(/service account/),
    })
    expect(line('mcp')).toMatchObject({ status: 'skipped' })
    expect(code).toBe(1)
  })
})
