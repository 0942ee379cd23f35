import { decodeJwt } from 'jose'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { main } from '../../../src/cli/commands/index.ts'
import { openLab, post, type TestLab } from '../../support/e2e/lab.ts'

const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'e2e', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
}
const SHOW = {
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: { name: 'show_request', arguments: {}, _meta: META },
}
const MCP = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': 'show_request' }

let lab: TestLab
let skewMs = 0

beforeAll(async () => {
  // The clock of the demo services: their tokens expire early.
  lab = await openLab({ clock: { now: () => Date.now() + skewMs } })
})
afterAll(() => lab.close())

const login = (argv: readonly string[]) => run(['login', '--port', new URL(lab.url).port, ...argv])
const connect = (argv: readonly string[]) =>
  run(['connect', '--port', new URL(lab.url).port, '--idp-port', new URL(lab.identity.url).port, ...argv])

async function run(argv: readonly string[]) {
  const out = { stdout: '', stderr: '' }
  const code = await main(['lab', ...argv], {
    stdout: (text) => void (out.stdout += text),
    stderr: (text) => void (out.stderr += text),
    env: {},
    stdin: () => Promise.resolve(''),
    stop: new Promise(() => undefined),
    onReload: () => undefined,
  })
  return { code, ...out }
}

/** The caller as the backend verified it. */
async function call(route: string, token: string) {
  const response = await post(lab.url + route, SHOW, { ...MCP, authorization: `Bearer ${token.trim()}` })
  const text = (await response.text()).replace(/^event: message\ndata: /, '')
  const body = JSON.parse(text) as {
    result?: { structuredContent?: { verified?: object } }
    error?: { data?: { reason: string } }
  }
  return {
    status: response.status,
    reason: body.error?.data?.reason,
    verified: body.result?.structuredContent?.verified,
    headers: response.headers,
  }
}

describe('a login at the lab', () => {
  it('sends the backend the user’s token of the sample provider, and the client a token of the proxy', async () => {
    const { code, stdout, stderr } = await login(['--user', 'alice'])
    expect([code, stderr]).toEqual([0, ''])
    expect(decodeJwt(stdout)).toMatchObject({ iss: lab.url, aud: `${lab.url}/upstream`, email: 'alice@example.com' })
    expect((await call('/upstream', stdout)).verified).toMatchObject({ workspaceUser: 'alice', scope: 'files:read' })
  })

  it('distinguishes users and resources', async () => {
    const [alice, bob] = [await login(['--user', 'alice']), await login(['--user', 'bob'])]
    const seen = [await call('/upstream', alice.stdout), await call('/upstream', bob.stdout)]
    expect(seen.map(({ verified }) => verified)).toMatchObject([{ workspaceUser: 'alice' }, { workspaceUser: 'bob' }])
    expect((await call('/upstream-exchange', alice.stdout)).status).toBe(401)
  })

  it('exchanges the user’s token of the identity provider', async () => {
    const { stdout } = await login(['--route', '/upstream-exchange', '--user', 'bob'])
    const { verified } = await call('/upstream-exchange', stdout)
    expect(verified).toMatchObject({ claims: { sub: 'bob', aud: 'lab-backend', act: { sub: 'lab-exchange' } } })
  })

  it('a caller from elsewhere has no session there', async () => {
    const token = await lab.token({ sub: 'alice', groups: [], aud: ['extauth-lab'] })
    for (const route of ['/upstream', '/upstream-exchange']) {
      const { status, reason, headers } = await call(route, token)
      expect([status, reason]).toEqual([401, 'no_session'])
      expect(headers.get('www-authenticate')).toContain(`resource_metadata="${lab.url}/.well-known/`)
    }
  })

  it('renews a token that the backend refuses, and the caller sees nothing of it', async () => {
    const { stdout } = await login(['--user', 'carol'])
    expect((await call('/upstream', stdout)).verified).toMatchObject({ workspaceUser: 'carol' })
    skewMs += 301_000
    expect((await call('/upstream', stdout)).verified).toMatchObject({ workspaceUser: 'carol' })
    // The refresh token is gone with its day: only a login helps.
    skewMs += 25 * 3_600_000
    const { status, reason } = await call('/upstream', stdout)
    expect([status, reason]).toEqual([401, 'no_session'])
    expect((await call('/upstream', stdout)).status).toBe(401)
    skewMs = 0
  })

  it.each([
    [['--user', 'nobody'], 1, 'the page "extauth lab" offers alice, bob, carol, mallory, not nobody'],
    [['--route', '/nowhere', '--user', 'alice'], 1, 'answered 404'],
    [['--route', 'upstream'], 2, '--route must be the path'],
    [['--port', 'x'], 2, '--port must be a port number'],
  ])('says why there is none: %j', async (argv, expected, says) => {
    const { code, stdout, stderr } = await login(argv)
    expect([code, stdout]).toEqual([expected, ''])
    expect(stderr).toContain(says)
  })

  it('leaves no token in the log', async () => {
    const { stdout } = await login(['--user', 'alice'])
    await call('/upstream', stdout)
    expect(lab.log.lines.join('\n')).not.toMatch(/xoxp-|xoxe-|eyJ/)
  })
})

describe('an account connected at the lab', () => {
  const caller = (sub: string) => lab.token({ sub })

  it('is the caller’s own: the backend verifies the token of the workspace', async () => {
    const [alice, bob] = [await caller('alice'), await caller('bob')]
    expect((await call('/connected', alice)).verified).toBeUndefined()
    expect(await connect(['--sub', 'alice'])).toEqual({
      code: 0,
      stdout: 'Your account at workspace is connected\n',
      stderr: '',
    })
    expect((await call('/connected', alice)).verified).toEqual({ workspaceUser: 'alice', scope: 'files:read' })
    expect((await call('/connected', bob)).verified).toBeUndefined()
    expect((await connect(['--sub', 'alice'])).stdout).toBe('workspace is connected already\n')
    await connect(['--sub', 'bob'])
    expect((await call('/connected', bob)).verified).toMatchObject({ workspaceUser: 'bob' })
  })

  it('is a personal key, which the demo service tests before it is stored', async () => {
    expect(await connect(['--sub', 'carol', '--provider', 'tracker'])).toMatchObject({ code: 0, stderr: '' })
    expect((await call('/connected-key', await caller('carol'))).verified).toEqual({ keyOf: 'carol' })
    expect((await call('/connected-key', await caller('bob'))).verified).toBeUndefined()
  })

  it('has a page with the keys; an unknown key is rejected there', async () => {
    const page = await (await fetch(`${lab.backend.url}/lab/keys`)).text()
    const [key = ''] = /lab-key-bob[\w-]+/.exec(page) ?? []
    const me = async (value: string) => {
      const response = await fetch(`${lab.backend.url}/lab/me`, { headers: { authorization: `Bearer ${value}` } })
      return [response.status, await response.json()]
    }
    expect(await me(key)).toEqual([200, { keyOf: 'bob' }])
    expect(await me('lab-key-eve-that-is-no-secret')).toEqual([401, { error: 'invalid_key' }])
    expect((await fetch(`${lab.backend.url}/lab/me`)).status).toBe(401)
  })

  it.each([
    [[], 2, 'needs --sub NAME'],
    [['--sub', 'alice', '--provider', 'other'], 2, '--provider must be workspace or tracker'],
    [['--sub', 'mallory'], 1, 'the page "extauth lab workspace" offers alice, bob, carol, not mallory'],
    [['--sub', 'nobody'], 1, 'offers alice, bob, carol, mallory, not nobody'],
    [['--sub', 'alice', '--port', '1'], 1, 'the lab does not run; start it with: '],
    [['--sub', 'alice', '--idp-port', '1'], 1, 'no lab answers at 127.0.0.1:1'],
  ])('says why there is none: %j', async (argv, expected, says) => {
    const { code, stdout, stderr } = await connect(argv)
    expect([code, stdout]).toEqual([expected, ''])
    expect(stderr).toContain(says)
  })

  it('leaves no token and no key in the log', async () => {
    await connect(['--sub', 'alice', '--provider', 'tracker'])
    expect(lab.log.lines.length).toBeGreaterThan(0)
    expect(lab.log.lines.join('\n')).not.toMatch(/xoxp-|xoxe-|eyJ|lab-key-/)
  })
})
