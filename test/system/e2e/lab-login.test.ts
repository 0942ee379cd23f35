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

async function login(argv: readonly string[]) {
  const out = { stdout: '', stderr: '' }
  const code = await main(['lab', 'login', '--port', new URL(lab.url).port, ...argv], {
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
