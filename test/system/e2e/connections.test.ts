import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as OldTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { afterEach, describe, expect, it } from 'vitest'
import { startLabBackend } from '../../../lab/index.ts'
import { runConnections } from '../../../src/cli/connections.ts'
import { processIo } from '../../../src/compose/index.ts'
import { Secret } from '../../../src/core/index.ts'
import { backFrom } from '../../support/authserver/rig.ts'
import { Browser } from '../../support/authserver/browser.ts'
import { authConfig, freePort, proxyConfig, run, type RunningTestProxy } from '../../support/e2e/run.ts'
import { createSockets } from '../../support/sockets.ts'
import { TLS } from '../../support/tls.ts'
import { startExampleServers } from '../../support/upstreams/example-servers.ts'
import { ACCESS, type Idp, startIdp } from '../../support/upstreams/idp.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const CA = { name: 'idp', key: 'ca' }
const INFO = { name: 'official', version: '1.0.0' }

interface World {
  readonly people: Idp
  readonly service: Idp
  readonly proxy: RunningTestProxy
  readonly backend: Awaited<ReturnType<typeof startLabBackend>>
  readonly token: (sub: string) => Promise<string>
}

/** Callers of `people`, a backend that accepts only tokens of `service`, and the proxy with files. */
async function startWorld(connections: object = {}, target?: string): Promise<World> {
  const [people, service] = [await startIdp(sockets), await startIdp(sockets)]
  const backend = sockets.closing(
    await startLabBackend({ port: 0, clock: Date, mounts: { '/mcp': { kind: 'bearer', token: new Secret(ACCESS) } } }),
  )
  const client = (idp: Idp) => ({
    issuerUrl: idp.url,
    clientId: 'us',
    clientSecretRef: { name: 'idp', key: 'secret' },
  })
  const proxy = sockets.closing(
    await run({
      'secrets/idp/ca': TLS.ca,
      'secrets/idp/secret': 'of us',
      'own.json': authConfig('own', { type: 'upstreamInject', upstreamInject: { providerName: 'github' } }),
      'proxy.json': proxyConfig({
        auth: {
          mode: 'oauth',
          oauth: {
            resourceUrl: 'http://localhost/mcp',
            providers: [{ name: 'people', issuerUrl: people.url, audience: 'us', caCertPath: 'secrets/idp/ca' }],
          },
        },
        connections: {
          login: [{ ...client(people), caBundleRef: CA }],
          providers: [
            {
              name: 'github',
              type: 'oidc',
              caBundleRef: CA,
              oidcConfig: { ...client(service), scopes: ['openid', 'repo'] },
            },
          ],
          ...connections,
        },
        routes: [
          { name: 'mcp', path: '/mcp', target: target ?? `${backend.url}/mcp`, externalAuthConfigRef: { name: 'own' } },
        ],
      }),
    }),
  )
  const token = (sub: string) => {
    const now = Math.floor(Date.now() / 1000)
    return people.key.sign({ iss: people.url, sub, aud: 'us', iat: now, exp: now + 600 })
  }
  return { people, service, proxy, backend, token }
}

/** The person `sub` opens the link and connects the account. */
async function connect({ people, service }: World, link: string, sub: string): Promise<string> {
  const browser = new Browser()
  people.claims = { ...people.claims, sub }
  const own = await browser.get(link)
  const consent = await browser.get(backFrom({ idp: people, clock: Date }, own))
  if (!consent.html.includes('<form')) return consent.html
  const away = await browser.press(consent, 'continue')
  return (await browser.get(backFrom({ idp: service, clock: Date }, away))).html
}

const transportOf = async ({ proxy, token }: World, sub: string) => ({
  url: new URL(`${proxy.url}/mcp`),
  options: { requestInit: { headers: { authorization: `Bearer ${await token(sub)}` } } },
})

describe('connected accounts in a running proxy', () => {
  it('a client of MCP 2026-07-28 connects with the first call, and the call goes through', async () => {
    const world = await startWorld()
    const pages: string[] = []
    const client = sockets.closing(
      new Client(INFO, {
        capabilities: { elicitation: { url: {} } },
        versionNegotiation: { mode: { pin: '2026-07-28' } },
      }),
    )
    client.setRequestHandler('elicitation/create', async ({ params }) => {
      pages.push(await connect(world, 'url' in params ? params.url : '', 'alice'))
      return { action: 'accept' }
    })
    const { url, options } = await transportOf(world, 'alice')
    await client.connect(new StreamableHTTPClientTransport(url, options))
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['connect_account'])

    const result = await client.callTool({ name: 'show_request' })

    expect(pages).toHaveLength(1)
    expect(pages[0]).toContain('github')
    expect(result.isError).not.toBe(true)
    const seen = world.backend.requests().at(-1)
    expect(JSON.stringify(seen?.headers)).toContain(`Bearer ${ACCESS}`)
    expect((await client.listTools()).tools.length).toBeGreaterThan(1)
  })

  it('a client of MCP 2025-11-25 without elicitation gets the link as text; a different person can not use it', async () => {
    const world = await startWorld()
    const client = sockets.closing(new OldClient(INFO))
    const { url, options } = await transportOf(world, 'alice')
    await client.connect(new OldTransport(url, options))
    const result = await client.callTool({ name: 'show_request' })
    const link = /http:\S+\/connect\/\S+/.exec(JSON.stringify(result))?.[0] ?? ''

    expect(await connect(world, link, 'bob')).toContain('made for somebody else')
    expect(world.backend.requests()).toHaveLength(0)
    expect(await connect(world, link, 'alice')).toContain('connected')

    const again = sockets.closing(new OldClient(INFO))
    await again.connect(new OldTransport(url, options))
    expect((await again.callTool({ name: 'show_request' }))['isError']).not.toBe(true)
    expect(JSON.stringify(world.proxy.log)).not.toContain(ACCESS)
  })
})

describe('extauth connections', () => {
  const runOn = async ({ proxy }: World, ...argv: string[]) => {
    const output = { stdout: '', stderr: '' }
    const io = {
      ...processIo(),
      env: {},
      stdout: (text: string) => void (output.stdout += text),
      stderr: (text: string) => void (output.stderr += text),
    }
    const code = await runConnections(['--admin', new URL(proxy.adminUrl).host, ...argv], io)
    return { code, ...output }
  }

  it('lists accounts by hash of the caller, and ends those of one caller', async () => {
    const world = await startWorld()
    expect(await runOn(world)).toEqual({ code: 0, stdout: 'no connected accounts\n', stderr: '' })
    for (const sub of ['alice', 'bob']) {
      const client = sockets.closing(new OldClient(INFO))
      const { url, options } = await transportOf(world, sub)
      await client.connect(new OldTransport(url, options))
      const result = await client.callTool({ name: 'show_request' })
      await connect(world, /http:\S+\/connect\/\S+/.exec(JSON.stringify(result))?.[0] ?? '', sub)
    }
    const all = await runOn(world)
    expect(all.stdout).toMatch(/^github: 2 connected, 0 broken\n( {2}[\w-]{22} {2}github\n){2}$/)
    expect(all.stdout).not.toContain('alice')

    const alice = ['--issuer', world.people.url, '--subject', 'alice']
    const one = JSON.parse((await runOn(world, '--json', ...alice)).stdout) as { callers: { caller: string }[] }
    expect(one).toEqual({
      providers: { github: { connected: 1, broken: 0 } },
      callers: [{ caller: expect.any(String) as string, connections: [{ provider: 'github', state: 'connected' }] }],
    })
    expect((await runOn(world, '--provider', 'other')).stdout).toBe('no connected accounts\n')
    expect(await runOn(world, '--disconnect', ...alice)).toMatchObject({ code: 0, stdout: 'disconnected: 1\n' })
    const rest = await runOn(world)
    expect(rest.stdout).toContain('github: 1 connected')
    expect(rest.stdout).not.toContain(one.callers[0]?.caller ?? 'a caller')
  })

  it('refuses half of a caller, and reports a listener that does not answer', async () => {
    const world = await startWorld()
    expect(await runOn(world, '--issuer', 'https://idp.example.com')).toMatchObject({ code: 2 })
    expect(await runOn(world, '--disconnect')).toMatchObject({
      code: 2,
      stderr: 'extauth connections: --disconnect requires --issuer and --subject\n',
    })
    const away = await runOn(world, '--admin', `127.0.0.1:${await freePort()}`)
    expect(away.code).toBe(1)
    expect(away.stderr).toContain('/connections: connect ECONNREFUSED')
  })
})

describe('a backend that rejects a connected account', () => {
  const connectedWorld = async (answer: (token: string | undefined) => [status: number, challenge?: string]) => {
    const target = await sockets.http((request, response) => {
      const [status, challenge] = answer(request.headers.authorization)
      response.writeHead(status, challenge === undefined ? {} : { 'www-authenticate': challenge }).end('{}')
    })
    const world = await startWorld({}, `${target}/mcp`)
    const call = async (): Promise<string> => {
      const { url, options } = await transportOf(world, 'alice')
      const response = await fetch(url, {
        method: 'POST',
        headers: { ...options.requestInit.headers, 'content-type': 'application/json', accept: 'application/json' },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'read' } }),
      })
      expect(response.status).toBe(200)
      return response.text()
    }
    const linkIn = (text: string): string => /http:\S+\/connect\/[\w-]+/.exec(text)?.[0] ?? ''
    expect(await connect(world, linkIn(await call()), 'alice')).toContain('is connected')
    return { world, call, linkIn }
  }

  it('asks to connect it again in the response to the same call', async () => {
    let isAccepted = true
    const { world, call, linkIn } = await connectedWorld(() => [isAccepted ? 200 : 401])
    expect(await call()).toBe('{}')
    isAccepted = false
    world.service.token = { status: 400, body: { error: 'invalid_grant' } }
    const text = await call()
    expect(text).toContain('github ended this connection')
    expect(linkIn(text)).not.toBe('')
  })

  it('asks for the scopes that it requires', async () => {
    const { world, call, linkIn } = await connectedWorld(() => [
      403,
      'Bearer error="insufficient_scope", scope="admin:repo"',
    ])
    const text = await call()
    expect(text).toContain('needs more permissions of your github account')
    const browser = new Browser()
    const own = await browser.get(linkIn(text))
    const consent = await browser.get(backFrom({ idp: world.people, clock: Date }, own))
    const away = await browser.press(consent, 'continue')
    expect(new URL(away.location ?? '').searchParams.get('scope')).toBe('openid repo admin:repo')
  })
})

describe('a connection to a remote MCP server that is discovered', () => {
  it('is made by a local user, and used by the next call', async () => {
    const { backend, state } = await startExampleServers(sockets)
    const proxy = sockets.closing(
      await run({
        'own.json': authConfig('own', { type: 'bearerToken', bearerToken: { connectionName: 'notes' } }),
        'proxy.json': proxyConfig({
          auth: { mode: 'anonymous' },
          connections: { singleUser: true, providers: [{ name: 'notes', type: 'mcp', mcp: {} }] },
          routes: [{ name: 'mcp', path: '/mcp', target: `${backend}/mcp`, externalAuthConfigRef: { name: 'own' } }],
        }),
      }),
    )
    const call = async (): Promise<string> => {
      const response = await fetch(`${proxy.url}/mcp`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'read' } }),
      })
      return response.text()
    }
    const link = /http:\S+\/connect\/\S+/.exec(await call())?.[0] ?? ''
    const browser = new Browser()
    const away = await browser.press(await browser.get(link), 'continue')
    expect(`${new URL(away.location ?? '').origin}/`).toBe(state.issuer)
    const back = await fetch(away.location ?? '', { redirect: 'manual' })
    const done = await browser.get(back.headers.get('location') ?? '')

    expect(done.status).toBe(200)
    expect(await call()).toContain('from the remote server')
  })
})
