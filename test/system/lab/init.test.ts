import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { main } from '../../../src/cli/commands/index.ts'
import { runProxy } from '../../../src/compose/proxy/process.ts'
import { AUTH_TYPES, type AuthType } from '../../../src/resources/index.ts'
import { ioOf } from '../../support/compose/io.ts'
import { freePort } from '../../support/e2e/run.ts'
import { openLab, post, type TestLab } from '../../support/e2e/lab.ts'
import { createRecordingLog } from '../../support/ports.ts'

let lab: TestLab
let directory: string
beforeAll(async () => void (lab = await openLab({})))
afterAll(() => lab.close())
beforeEach(() => void (directory = path.join(mkdtempSync(path.join(os.tmpdir(), 'extauth init ')), "it's mine")))
afterEach(() => rmSync(path.dirname(directory), { recursive: true, force: true }))

async function run(...argv: string[]) {
  const { io, out } = ioOf()
  return { code: await main(argv, io), ...out }
}

const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'init', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
}
const params = { name: 'show_request', arguments: {}, _meta: META }
const SHOW = { jsonrpc: '2.0', id: 1, method: 'tools/call', params }
const MCP = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': 'show_request' }

/** Facts about a request that the backend verified. */
async function verifiedAt(url: string, token: string | undefined) {
  const response = await post(url, SHOW, {
    ...MCP,
    ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
  })
  const text = (await response.text()).replace(/^event: message\ndata: /, '')
  return (JSON.parse(text) as { result?: { structuredContent?: { verified?: unknown } } }).result?.structuredContent
    ?.verified
}

/** The file with the addresses of this lab instead of the usual ones, and a port of its own. */
async function moveTo(file: string): Promise<string> {
  const own = `127.0.0.1:${await freePort()}`
  const { identity, backend, sts, workspace } = lab
  const hosts: Readonly<Record<string, string>> = {
    '127.0.0.1:8080': new URL(lab.url).host,
    '127.0.0.1:8082': new URL(identity.url).host,
    '127.0.0.1:8083': new URL(backend.url).host,
    '127.0.0.1:8084': new URL(sts.url).host,
    '127.0.0.1:8085': new URL(identity.tlsUrl ?? '').host,
    '127.0.0.1:8086': new URL(workspace.url).host,
    '127.0.0.1:8088': own,
    '127.0.0.1:8089': '127.0.0.1:0',
  }
  const text = readFileSync(file, 'utf8').replaceAll(/127\.0\.0\.1:\d+/g, (written) => hosts[written] ?? written)
  writeFileSync(file, text)
  return `http://${own}`
}

const ALICE = { sub: 'alice', groups: ['admins'], aud: ['extauth-lab'] }
const loginAt = (route: string) => async (port: string) =>
  (await run('lab', 'login', '--port', port, '--route', route, '--user', 'alice')).stdout.trim()
const login = loginAt('/upstream')

/** Where a call goes, who calls, and what the backend finds. */
const CALLS: Readonly<
  Record<AuthType, { token?: (port: string) => Promise<string>; route?: string; verified: unknown }>
> = {
  unauthenticated: { verified: expect.anything() },
  headerInjection: { verified: expect.anything() },
  bearerToken: { verified: expect.anything() },
  tokenExchange: {
    token: () => lab.token(ALICE),
    verified: expect.objectContaining({
      claims: expect.objectContaining({ sub: 'alice', aud: 'lab-backend' }) as object,
    }),
  },
  clientCredentials: {
    verified: expect.objectContaining({
      claims: expect.objectContaining({ sub: 'lab-proxy', aud: 'lab-backend', scope: 'mcp:tools' }) as object,
    }),
  },
  obo: {
    token: () => lab.token(ALICE),
    verified: expect.objectContaining({
      claims: expect.objectContaining({ sub: 'alice', aud: 'api://lab-backend' }) as object,
    }),
  },
  cloudSts: { token: () => lab.token(ALICE), verified: expect.anything() },
  embeddedAuthServer: {
    token: login,
    route: '/upstream',
    verified: expect.objectContaining({ workspaceUser: 'alice' }),
  },
  xaa: {
    token: loginAt('/xaa'),
    route: '/xaa',
    verified: expect.objectContaining({
      claims: expect.objectContaining({ client_id: 'lab-xaa', email: 'alice@example.com' }) as object,
    }),
  },
  upstreamInject: { token: login, route: '/upstream', verified: expect.objectContaining({ workspaceUser: 'alice' }) },
}

describe('extauth init', () => {
  it.each(AUTH_TYPES)('%s: what it writes is valid, starts, and works against the lab', async (type) => {
    expect(await run('init', type, directory)).toMatchObject({ code: 0, stderr: '' })
    const file = path.join(directory, 'proxy.yaml')
    const base = await moveTo(file)
    expect(await run('validate', file)).toMatchObject({ code: 0 })
    const log = createRecordingLog()
    const proxy = await runProxy({ configPaths: [file], env: {}, log })
    try {
      // A route of an authorization server sends its callers' tokens of the first upstream.
      const runs = type === 'embeddedAuthServer' ? 'upstreamInject' : type
      expect(proxy.routes.map((route) => route.auth.type)).toEqual([runs])
      const { token, route = '/mcp', verified } = CALLS[type]
      expect(await verifiedAt(base + route, await token?.(new URL(base).port))).toEqual(verified)
      expect(log.lines.filter((line) => /"level":"(warn|error)"/.test(line))).toEqual([])
    } finally {
      await proxy.close()
    }
  })

  it.each(AUTH_TYPES)('%s: only the owner can read secrets, or enter their folders', async (type) => {
    await run('init', type, directory)
    const secrets = path.join(directory, 'secrets')
    const all = ['.', ...(readdirSync(secrets, { recursive: true }) as string[])].map((name) =>
      path.join(secrets, name),
    )
    for (const one of all) {
      const stat = statSync(one)
      expect([one, (stat.mode & 0o777).toString(8)]).toEqual([one, stat.isDirectory() ? '700' : '600'])
    }
  })

  it.each(AUTH_TYPES)('%s: is commented, marks what is yours, and names a schema that is there', async (type) => {
    const { stdout } = await run('init', type, directory)
    const text = readFileSync(path.join(directory, 'proxy.yaml'), 'utf8')
    expect(text).toContain('# yours')
    const schemas = [...text.matchAll(/\$schema=(\S+)$/gm)].map((match) => match[1] ?? '')
    expect(schemas).toHaveLength(text.split('\n---\n').length)
    for (const schema of schemas)
      expect(JSON.parse(readFileSync(path.join(directory, schema), 'utf8'))).toHaveProperty('$defs')
    for (const [, secret = ''] of text.matchAll(/# (\.\/secrets\/\S+)$/gm))
      expect(existsSync(path.join(directory, secret))).toBe(true)
    // A shell parses its output as intended.
    const [, words = ''] = /^ {2}.* proxy --config (.*)$/m.exec(stdout) ?? []
    const { stdout: said } = spawnSync('bash', ['-c', `printf '%s\\n' ${words}`], { encoding: 'utf8' })
    expect(said).toBe(`${path.join(directory, 'proxy.yaml')}\n`)
  })

  it('generates new keys each time', async () => {
    await run('init', 'upstreamInject', path.join(directory, 'a'))
    await run('init', 'upstreamInject', path.join(directory, 'b'))
    for (const name of ['login/hmac', 'login/signing-key']) {
      const [a, b] = ['a', 'b'].map((one) => readFileSync(path.join(directory, one, 'secrets', name), 'utf8'))
      expect(a).not.toBe(b)
      expect(a?.length).toBeGreaterThanOrEqual(64)
    }
  })

  it.each([
    ['proxy.yaml', (file: string) => writeFileSync(file, 'mine')],
    [
      'secrets/backend/token',
      (file: string) => (mkdirSync(path.dirname(file), { recursive: true }), writeFileSync(file, 'mine')),
    ],
    ['proxy.yaml', (file: string) => symlinkSync(path.join(path.dirname(file), 'elsewhere'), file)],
    ['secrets', (file: string) => writeFileSync(file, 'mine')],
    ['secrets', (file: string) => symlinkSync(os.tmpdir(), file)],
    ['schema/extauth.schema.json', (file: string) => (mkdirSync(path.dirname(file)), writeFileSync(file, 'mine'))],
  ])('never writes over what is there, and leaves nothing else behind: %s', async (name, make) => {
    mkdirSync(directory)
    make(path.join(directory, name))
    const before = readdirSync(directory)
    const { code, stdout, stderr } = await run('init', 'bearerToken', directory)
    expect([code, stdout]).toEqual([1, ''])
    expect(stderr).toContain(`${path.join(directory, name)} exists already; nothing was written.`)
    expect(readdirSync(directory)).toEqual(before)
  })

  it('makes the folders above, and takes them back when something cannot be written', async () => {
    const below = path.join(directory, 'x', 'y', 'z')
    expect((await run('init', 'bearerToken', below)).code).toBe(0)
    expect(existsSync(path.join(below, 'proxy.yaml'))).toBe(true)
    const tooLong = path.join(directory, 'other', 'n'.repeat(300), 'below')
    const { code, stderr } = await run('init', 'bearerToken', tooLong)
    expect(code).toBe(1)
    expect(stderr).toContain('nothing was written')
    expect(existsSync(path.join(directory, 'other'))).toBe(false)
  })

  it('says what cannot be written', async () => {
    mkdirSync(directory)
    writeFileSync(path.join(directory, 'file'), '')
    chmodSync(directory, 0o700)
    const { code, stderr } = await run('init', 'bearerToken', path.join(directory, 'file', 'below'))
    expect(code).toBe(1)
    expect(stderr).toMatch(/cannot be written \(ENOTDIR\); nothing was written\.\n$/)
  })

  it.each([
    [[], 'TYPE is required'],
    [['bearertoken'], 'Did you mean bearerToken?'],
    [['constructor'], 'unknown type "constructor"'],
    [['bearerToken', 'a', 'b'], 'TYPE is required'],
  ])('%j is a usage error', async (argv, message) => {
    const { code, stderr } = await run('init', ...argv)
    expect(code).toBe(2)
    expect(stderr).toContain(message)
  })
})
