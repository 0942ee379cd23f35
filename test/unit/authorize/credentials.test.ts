import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { buildCandidate, createServices, loadModules } from '../../../src/compose/proxy/index.ts'
import type { Claims, McpView } from '../../../src/core/index.ts'
import { NO_REQUEST } from '../../../src/core/index.ts'
import { parseDocuments, resolveProxy } from '../../../src/load/index.ts'
import { compileSelection, createRoleMapper } from '../../../src/obtain/index.ts'
import { externalAuth, proxy } from '../../support/load/documents/build.ts'
import { createManualClock, createRecordingLog } from '../../support/ports.ts'
import { startProxy } from '../../support/proxy/harness.ts'
import { createSockets } from '../../support/sockets.ts'

const sockets = createSockets()
let directory: string
beforeEach(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'credentials-'))
  for (const name of ['read', 'write']) {
    await mkdir(path.join(directory, 'secrets', name), { recursive: true })
    await writeFile(path.join(directory, 'secrets', name, 'key'), `${name}-key`)
  }
})
afterEach(async () => {
  await sockets.closeAll()
  await rm(directory, { recursive: true, force: true })
})

const bearer = (name: string) => ({ type: 'bearerToken', bearerToken: { tokenSecretRef: { name, key: 'key' } } })
const header = (name: string) => ({
  type: 'headerInjection',
  headerInjection: { headerName: 'X-Write-Key', valueSecretRef: { name, key: 'key' } },
})
const load = (route: object) => {
  const documents = [
    proxy({
      secretsDirectory: './secrets',
      auth: { mode: 'anonymous' },
      routes: [
        { name: 'a', path: '/', externalAuthConfigRef: { name: 'read' }, target: 'http://127.0.0.1:1', ...route },
      ],
    }),
    externalAuth(bearer('read'), 'read'),
    externalAuth(header('write'), 'write'),
    externalAuth(
      { type: 'tokenExchange', tokenExchange: { tokenUrl: 'https://idp.example/t', audience: 'a' } },
      'exchange',
    ),
  ]
  const text = documents.map((document) => JSON.stringify(document)).join('\n---\n')
  return resolveProxy(parseDocuments([{ path: path.join(directory, 'proxy.yaml'), text }]), {})
}

async function served(route: object) {
  const seen: Record<string, unknown>[] = []
  const target = await sockets.http((request, response) => {
    seen.push(request.headers)
    request.resume().on('end', () => response.writeHead(200, { 'content-type': 'application/json' }).end('{}'))
  })
  const { config, problems } = load({ target, ...route })
  expect(problems ?? []).toEqual([])
  if (config === undefined) throw new Error('not resolved')
  const log = createRecordingLog()
  const services = createServices({ ...config, stsEndpoint: undefined, env: {}, log, clock: createManualClock() })
  const { runtime } = await buildCandidate(config, 'http://127.0.0.1', services, await loadModules(config))
  const { url } = await startProxy(sockets, runtime)
  const call = async (name: string, headers: Record<string, string> = {}) => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: { n: 1 } } })
    const response = await fetch(url, {
      method: 'POST',
      body,
      headers: { 'content-type': 'application/json', ...headers },
    })
    return response.status
  }
  return { call, seen, url }
}

describe('credentials of a route', () => {
  const credentials = [
    { tools: ['delete_*'], when: 'mcp.args.n == 1.0', externalAuthConfigRef: { name: 'write' } },
    { tools: ['delete_*'], externalAuthConfigRef: { name: 'read' } },
  ]

  it('are chosen by the request, and copies of a caller are dropped whichever is chosen', async () => {
    const { call, seen, url } = await served({ credentials })
    const own = { 'x-write-key': 'mine', authorization: 'Bearer mine' }
    expect(await call('get_a', own)).toBe(200)
    expect(await call('delete_a', own)).toBe(200)
    await fetch(url)
    expect(seen.map((headers) => [headers['authorization'], headers['x-write-key']])).toEqual([
      ['Bearer read-key', undefined],
      [undefined, 'write-key'],
      ['Bearer read-key', undefined],
    ])
  })

  it('need no rules for requests to be read, and bodies are refused alike', async () => {
    const { url } = await served({ credentials })
    const response = await fetch(url, { method: 'POST', body: '[]', headers: { 'content-type': 'application/json' } })
    expect(response.status).toBe(400)
  })

  it('are among what a configuration needs: their secrets are those of the route', () => {
    const { config } = load({ credentials })
    const needed = config?.places.secrets.map(({ label, at }) => [label, at.routes])
    expect(needed).toEqual(expect.arrayContaining([['write/key', ['a']]]))
  })

  it('are held to the rules of a route', () => {
    const { problems = [] } = load({ credentials: [{ externalAuthConfigRef: { name: 'exchange' } }] })
    expect(problems.map(({ message }) => message).join()).toContain(
      '"exchange": type "tokenExchange" needs to know the caller',
    )
    expect(load({ credentials: [{ externalAuthConfigRef: { name: 'nowhere' } }] }).config).toBeUndefined()
  })
})

it('a condition of an entry that cannot be evaluated is counted', () => {
  const counted: unknown[] = []
  const when = 'claims.groups.exists(g, g == "a")'
  const select = compileSelection(
    [
      { tools: ['b'], when: undefined },
      { tools: ['a'], when },
    ],
    (...failure) => counted.push(failure),
  )
  const mcp = { ...NO_REQUEST, kind: 'tool' as const, name: 'a' }
  expect(select({ mcp, claims: {}, route: 'r' })).toBeUndefined()
  expect(select({ mcp, claims: { groups: ['a'] }, route: 'r' })).toMatchObject({ when })
  expect(counted).toEqual([[1, 'error']])
})

describe('role mappings', () => {
  const mapper = createRoleMapper({
    roleClaim: 'groups',
    roleMappings: [
      { tools: ['delete_*'], claim: 'admins', roleArn: 'arn:aws:iam::123456789012:role/delete' },
      { matcher: 'mcp.args.repo == "a" && route == "r"', roleArn: 'arn:aws:iam::123456789012:role/a' },
      { tools: ['list_*'], roleArn: 'arn:aws:iam::123456789012:role/list' },
    ],
    fallbackRoleArn: 'arn:aws:iam::123456789012:role/other',
  })
  const roleOf = (mcp: Partial<McpView>, claims: object = {}) =>
    mapper
      .choose(claims as Claims, { request: { mcp: { ...NO_REQUEST, ...mcp }, route: 'r' } })
      .roleArn?.replace(/.*role\//, '')

  it('may read the request', () => {
    expect(mapper.readsRequest).toBe(true)
    const tool = (name: string, args: object = {}) => ({ kind: 'tool' as const, name, args: args as Claims })
    expect(roleOf(tool('delete_a'), { groups: ['admins'] })).toBe('delete')
    expect(roleOf(tool('delete_a'), { groups: ['users'] })).toBe('other')
    expect(roleOf(tool('x', { repo: 'a' }))).toBe('a')
    expect(roleOf(tool('list_a'))).toBe('list')
    expect(roleOf({})).toBe('other')
  })

  it('that do not read it are decided once for a token', () => {
    const roleMappings = [{ matcher: 'claims.a == 1.0', roleArn: 'arn:aws:iam::123456789012:role/delete' }]
    expect(createRoleMapper({ roleClaim: 'groups', roleMappings }).readsRequest).toBe(false)
  })
})
