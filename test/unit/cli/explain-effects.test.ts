import { Socket } from 'node:net'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { runExplain } from '../../../src/cli/explain.ts'
import { type ExplainReport, REMOVED } from '../../../src/examine/explain/explain-report.ts'
import { createHeaderPolicy } from '../../../src/http/index.ts'

let directory: string
const CONFIG = `
apiVersion: extauth.dev/v1alpha1
kind: ProxyConfig
metadata: { name: local }
spec:
  secretsDirectory: ./secrets
  auth: { mode: oauth, oauth: { resourceUrl: "https://mcp.example.com", providers: [{ name: idp, issuerUrl: "https://issuer.example", audience: mcp }] } }
  routes:
    - { name: key, path: /key, target: "https://api.example/mcp", externalAuthConfigRef: { name: key } }
    - { name: own, path: /own, target: "https://api.example/mcp", externalAuthConfigRef: { name: own } }
    - { name: obo, path: /obo, target: "https://api.example/mcp", externalAuthConfigRef: { name: obo } }
    - { name: xaa, path: /xaa, target: "https://api.example/mcp", externalAuthConfigRef: { name: xaa } }
    - { name: exchange, path: /exchange, target: "https://api.example/mcp", externalAuthConfigRef: { name: exchange }, requiredScopes: [read, write] }
---
apiVersion: extauth.dev/v1alpha1
kind: MCPExternalAuthConfig
metadata: { name: key }
spec: { type: headerInjection, headerInjection: { headerName: X-Api-Key, valueSecretRef: { name: key, key: value } } }
---
apiVersion: extauth.dev/v1alpha1
kind: MCPExternalAuthConfig
metadata: { name: own }
spec: { type: clientCredentials, clientCredentials: { tokenUrl: "https://issuer.example/token", clientId: us, clientSecretRef: { name: us, key: secret } } }
---
apiVersion: extauth.dev/v1alpha1
kind: MCPExternalAuthConfig
metadata: { name: obo }
spec: { type: obo, obo: { tenantId: contoso.example, clientId: mcp, clientSecretRef: { name: us, key: secret }, audience: "api://backend" } }
---
apiVersion: extauth.dev/v1alpha1
kind: MCPExternalAuthConfig
metadata: { name: xaa }
spec: { type: xaa, xaa: { idpTokenUrl: "https://issuer.example/token", idpClientId: mcp, targetTokenUrl: "https://as.example/token", targetClientId: us, targetAudience: "https://as.example" } }
---
apiVersion: extauth.dev/v1alpha1
kind: MCPExternalAuthConfig
metadata: { name: exchange }
spec: { type: tokenExchange, tokenExchange: { tokenUrl: "https://issuer.example/token", audience: a, scopes: [x], externalTokenHeaderName: X-Upstream } }
`
const CLAIMS = { iss: 'https://issuer.example', aud: 'mcp', sub: 'ada', exp: 4_102_444_800, scope: 'read' }
const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
const tokenOf = (claims: object) => `${encode({ alg: 'RS256' })}.${encode(claims)}.c2ln`

beforeAll(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'explain-'))
  await writeFile(path.join(directory, 'proxy.yaml'), CONFIG)
})
afterAll(() => rm(directory, { recursive: true }))

async function report(route: string, input: 'token-file' | 'claims', stdin: string): Promise<ExplainReport> {
  let out = ''
  const argv = ['--config', directory, '--route', route, `--${input}`, '-', '--output', 'json']
  const code = await runExplain(argv, {
    stdout: (text) => (out += text),
    stderr: () => undefined,
    env: {},
    stdin: () => Promise.resolve(stdin),
    stop: Promise.resolve(''),
    onReload: () => undefined,
  })
  expect(code).toBe(0)
  return JSON.parse(out) as ExplainReport
}

test('the headers that it says are removed are those that the proxy removes', () => {
  const samples = REMOVED.filter((name) => !name.includes(' ')).map((name) => name.replace('*', 'anything'))
  expect(samples.length).toBeGreaterThan(8)
  const policy = createHeaderPolicy([])
  for (const name of samples) expect([name, policy([name, 'value']).headers]).toEqual([name, []])
  expect(policy(['x-other', 'value']).headers).toEqual(['x-other', 'value'])
})

test.each([
  ['key', 'x-api-key: (the secret)', 'x-api-key'],
  ['exchange', 'x-upstream: Bearer (the exchanged token)', 'x-upstream'],
  ['own', "authorization: Bearer (the proxy's own token)", 'authorization'],
  ['obo', "authorization: Bearer (a token on the caller's behalf)", 'authorization'],
  ['xaa', 'authorization: Bearer (the token for the identity assertion)', 'authorization'],
])('on the route %s, %s is added and what the caller sent under that name removed', async (route, added, removed) => {
  const { headers } = await report(route, 'claims', JSON.stringify(CLAIMS))
  expect(headers.added).toEqual(expect.arrayContaining([added, 'via', 'x-forwarded-for']))
  expect(headers.removed).toContain(removed)
  expect(headers.removed).toContain('authorization')
})

test('the parts of the cache key of an exchange are hashed; the token is among them where it is known', async () => {
  const fromClaims = await report('exchange', 'claims', JSON.stringify(CLAIMS))
  const common = ['config', 'configHash', 'issuer', 'identity', 'audience', 'scopes']
  expect(Object.keys(fromClaims.cacheKey ?? {})).toEqual(common)
  const [one, other] = [tokenOf(CLAIMS), tokenOf({ ...CLAIMS, jti: '2' })]
  const fromOne = await report('exchange', 'token-file', one)
  const fromOther = await report('exchange', 'token-file', other)
  expect(Object.keys(fromOne.cacheKey ?? {})).toEqual([...common, 'subjectToken'])
  expect(fromOne.cacheKey?.['subjectToken']).not.toBe(fromOther.cacheKey?.['subjectToken'])
  expect(fromOne.cacheKey).toMatchObject(fromClaims.cacheKey ?? {})
  expect((await report('key', 'token-file', one)).cacheKey).toBeUndefined()
  expect((await report('exchange', 'token-file', 'opaque-token')).cacheKey).toBeUndefined()
})

test.each([
  ['own', ['config', 'configHash']],
  ['obo', ['config', 'configHash', 'issuer', 'identity', 'tenant', 'client', 'scopes', 'subjectToken']],
  ['xaa', ['config', 'configHash', 'issuer', 'identity', 'audience', 'resource', 'scopes', 'subjectToken']],
])('a credential of the route %s is for %j', async (route, parts) => {
  expect(Object.keys((await report(route, 'token-file', tokenOf(CLAIMS))).cacheKey ?? {})).toEqual(parts)
})

test.each([
  ['obo', { ...CLAIMS, scp: 'read' }, undefined],
  ['obo', { ...CLAIMS, scp: 'read', idtyp: 'app' }, /^rejected with 403 not_a_user_token: .*\(idtyp\)$/],
  ['obo', CLAIMS, /^rejected with 403 not_a_user_token: .*\(scp\)$/],
  ['xaa', { ...CLAIMS, scope: null }, undefined],
  ['xaa', CLAIMS, /^rejected with 403 no_id_token: .*\(it has the claim scope\)$/],
  ['xaa', { ...CLAIMS, scope: null, typ: 'Bearer' }, /^rejected with 403 no_id_token: .*claim typ is not ID$/],
  ['own', { ...CLAIMS, idtyp: 'app' }, undefined],
  ['exchange', { ...CLAIMS, scope: 'read write', idtyp: 'app' }, undefined],
])('what the type of %s would refuse of %j is noted', async (route, claims, note) => {
  const { notes } = await report(route, 'claims', JSON.stringify(claims))
  expect(notes).toEqual(note === undefined ? [] : [expect.stringMatching(note)])
})

test('of a token that only introspection knows nothing is noted', async () => {
  expect((await report('obo', 'token-file', 'opaque-token')).notes).toEqual([])
})

test('scopes that the route requires and the token lacks are noted', async () => {
  expect((await report('exchange', 'claims', JSON.stringify(CLAIMS))).notes).toEqual([
    'the token lacks required scopes (write): rejected with 403',
  ])
  expect((await report('exchange', 'claims', JSON.stringify({ ...CLAIMS, scope: 'write read' }))).notes).toEqual([])
})

test('no connection is opened', async () => {
  const connect = vi.spyOn(Socket.prototype, 'connect')
  await report('exchange', 'token-file', tokenOf(CLAIMS))
  expect(connect).not.toHaveBeenCalled()
  connect.mockRestore()
})
