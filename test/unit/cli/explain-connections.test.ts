import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { runExplain } from '../../../src/cli/explain.ts'
import type { ExplainReport } from '../../../src/examine/explain/index.ts'
import { externalAuth, proxy, route, SPECS } from '../../support/load/documents/build.ts'

const ISSUER = 'https://idp.example.com'
const oauth = {
  mode: 'oauth',
  oauth: {
    resourceUrl: 'https://mcp.example.com',
    providers: [{ name: 'corp', issuerUrl: ISSUER, audience: 'mcp' }],
  },
}
const github = { name: 'github', type: 'oidc', oidcConfig: { issuerUrl: 'https://github.example.com', clientId: 'c' } }
const listing = { secretRef: { name: 'lists', key: 'token' } }
const tracker = { name: 'tracker', type: 'secret', secret: { label: 'API key' }, listing }
const routes = [
  route({ name: 'code', path: '/code', externalAuthConfigRef: { name: 'code' } }),
  route({ name: 'issues', path: '/issues', externalAuthConfigRef: { name: 'issues' } }),
  route({ name: 'files', path: '/files', externalAuthConfigRef: { name: 'files' } }),
]
const configs = [
  externalAuth({ type: 'upstreamInject', upstreamInject: { providerName: 'github' } }, 'code'),
  externalAuth(
    { type: 'headerInjection', headerInjection: { headerName: 'X-Key', connectionName: 'tracker' } },
    'issues',
  ),
  externalAuth({ ...SPECS.cloudSts, cloudSts: { ...SPECS.cloudSts.cloudSts, subjectProviderName: 'github' } }, 'files'),
]
const login = [{ issuerUrl: ISSUER, clientId: 'connect', match: ['tid', 'oid'] }]
const CLAIMS = { iss: ISSUER, aud: 'mcp', sub: 'ada', tid: 'contoso', oid: 'o-1', exp: 4_102_444_800 }

let directory: string
const write = (name: string, spec: object) =>
  writeFile(
    path.join(directory, name),
    [proxy({ routes, ...spec }), ...configs].map((one) => JSON.stringify(one)).join('\n---\n'),
  )
beforeAll(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'explain-connections-'))
  const providers = [github, tracker]
  await write('shared.yaml', { auth: oauth, connections: { login, providers } })
  const own = { auth: oauth, connections: { providers, singleUser: true } }
  await write('own.yaml', own)
})
afterAll(() => rm(directory, { recursive: true }))

async function explain(file: string, name: string, claims: object, ...more: readonly string[]): Promise<string> {
  let out = ''
  const argv = ['--config', path.join(directory, file), '--route', name, '--claims', JSON.stringify(claims), ...more]
  await runExplain(argv, {
    stdout: (text) => (out += text),
    stderr: () => undefined,
    env: {},
    stdin: () => Promise.resolve(''),
    stop: Promise.resolve(''),
    onReload: () => undefined,
  })
  return out
}
const report = async (file: string, name: string, claims: object): Promise<ExplainReport> =>
  JSON.parse(await explain(file, name, claims, '--output', 'json')) as ExplainReport

test('names the connection, its owner, and what happens without it', async () => {
  expect((await report('shared.yaml', 'code', CLAIMS)).connection).toEqual({
    provider: 'github',
    type: 'oidc',
    field: 'upstreamInject.providerName',
    owner: { issuer: ISSUER, identity: expect.stringContaining('ada') as string },
    login: { issuer: ISSUER, match: { tid: 'contoso', oid: 'o-1' }, claims: ['tid', 'oid'] },
    without: [
      expect.stringMatching(/^way 1, MCP 2026-07-28.*input_required/) as string,
      expect.stringMatching(/^way 2, MCP 2025-11-25.*-32042/) as string,
      expect.stringMatching(/^way 3, other clients.*isError.*-32000/) as string,
      expect.stringContaining('connect_account') as string,
    ],
  })
})

test('the report says it in its first lines, and all of it with -v', async () => {
  const brief = await explain('shared.yaml', 'issues', CLAIMS)
  expect(brief.split('\n').slice(0, 2)).toEqual([
    'connection    tracker (secret), named in headerInjection.connectionName',
    expect.stringContaining(`owner         issuer ${ISSUER}, identity `) as string,
  ])
  const whole = await explain('shared.yaml', 'issues', CLAIMS, '-v')
  expect(whole).toContain(`proof         login at ${ISSUER} with equal tid "contoso", oid "o-1"`)
  expect(whole).toContain('without it    handshake, lists and pings: the credential of listing.secretRef')
  expect(whole).not.toContain('has no roles')
})

test('a role is shown beside the connection whose ID token STS receives', async () => {
  const text = await explain('shared.yaml', 'files', CLAIMS)
  expect(text).toContain('connection    github (oidc), named in cloudSts.subjectProviderName')
  expect(text).toContain('role          arn:aws:iam::123456789012:role/a')
})

test('a token without the claims of the login is reported: its owner can connect nothing', async () => {
  const { oid: _oid, ...claims } = CLAIMS
  const { notes, connection } = await report('shared.yaml', 'code', claims)
  expect(notes).toContain(
    `the claims lack one of tid, oid, which the login at ${ISSUER} compares: no account can be connected`,
  )
  expect(connection?.login?.match).toBeUndefined()
})

test('with a single user it belongs to the local user, who needs no login', async () => {
  expect((await report('own.yaml', 'code', CLAIMS)).connection).toMatchObject({ provider: 'github' })
  const text = await explain('own.yaml', 'code', CLAIMS)
  expect(text).toContain('owner         the local user')
  expect(text).not.toContain('proof')
})
