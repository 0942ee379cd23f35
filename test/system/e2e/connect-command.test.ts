import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Browser } from '../../support/authserver/browser.ts'
import { extauth, type Running } from '../../support/e2e/process.ts'
import { authConfig, freePort, proxyConfig } from '../../support/e2e/run.ts'
import { createSockets } from '../../support/sockets.ts'
import { startExampleServers } from '../../support/upstreams/example-servers.ts'

const sockets = createSockets()
const running: Running[] = []
let state: string

beforeEach(async () => {
  state = await mkdtemp(path.join(os.tmpdir(), 'extauth-connect-'))
})
afterEach(async () => {
  for (const { process: child, ended } of running.splice(0)) {
    child.kill('SIGKILL')
    await ended
  }
  await sockets.closeAll()
  await rm(state, { recursive: true })
})

/** `extauth proxy --connect` as a process; its state is in `state`. */
function start(...args: readonly string[]): Running {
  const started = extauth(['proxy', '--connect', '--admin', '127.0.0.1:0', ...args], { env: { XDG_STATE_HOME: state } })
  running.push(started)
  return started
}

async function startProxy(target: string, port: number): Promise<Running & { readonly url: string }> {
  const started = start('--target', target, '--listen', `127.0.0.1:${port}`)
  await started.shows('/connections\n')
  return { ...started, url: `http://127.0.0.1:${port}/` }
}

async function stop({ process: child, ended }: Running): Promise<void> {
  child.kill('SIGTERM')
  expect(await ended).toBe(0)
}

async function post(url: string, message: object, headers: Record<string, string> = {}) {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, ...message }),
  })
  return { headers: response.headers, text: await response.text() }
}

const CALL = { method: 'tools/call', params: { name: 'read', arguments: {} } }
const STATELESS = {
  method: 'tools/call',
  params: {
    ...CALL.params,
    _meta: {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientCapabilities': { elicitation: { url: {} } },
    },
  },
}
const STATELESS_HEADERS = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': 'read' }
const INITIALIZE = {
  method: 'initialize',
  params: {
    protocolVersion: '2025-11-25',
    capabilities: { elicitation: { url: {} } },
    clientInfo: { name: 'test', version: '1' },
  },
}
const linkIn = (text: string): string => /http:[^\s"]+\/connect\/[\w-]+/.exec(text)?.[0] ?? ''

/** The local user opens the link, consents, and returns from the authorization server. */
async function connect(link: string): Promise<void> {
  const browser = new Browser()
  const away = await browser.press(await browser.get(link), 'continue')
  const back = await fetch(away.location ?? '', { redirect: 'manual' })
  const done = await browser.get(back.headers.get('location') ?? '')
  expect([done.status, done.html]).toEqual([200, expect.stringContaining('connected')])
}

/** The directory of the only server. */
async function directoryOf(): Promise<string> {
  const root = path.join(state, 'extauth', 'connections')
  const [name = ''] = await readdir(root)
  return path.join(root, name)
}

describe('extauth proxy --target URL --connect', () => {
  it('asks in all three ways, connects in the browser, and is still connected after a restart', async () => {
    const { backend, provider, registrations } = await startExampleServers(sockets)
    const target = `${backend}/mcp`
    const port = await freePort()
    const proxy = await startProxy(target, port)

    const asText = await post(proxy.url, CALL)
    expect(JSON.parse(asText.text)).toMatchObject({ result: { isError: true } })
    const asInput = await post(proxy.url, STATELESS, STATELESS_HEADERS)
    expect(JSON.parse(asInput.text)).toMatchObject({
      result: { resultType: 'input_required', inputRequests: { connect_account: { params: { mode: 'url' } } } },
    })
    const session = (await post(proxy.url, INITIALIZE)).headers.get('mcp-session-id') ?? ''
    const inSession = { 'mcp-session-id': session, 'mcp-protocol-version': '2025-11-25' }
    const asError = await post(proxy.url, CALL, inSession)
    expect(JSON.parse(asError.text)).toMatchObject({ error: { code: -32042 } })
    const links = [asText, asInput, asError].map(({ text }) => linkIn(text))
    expect(new Set(links).size, 'one link within a minute').toBe(1)

    await connect(links[0] ?? '')
    // Web clients must not have a redirect URI on loopback.
    expect(registrations).toMatchObject([
      { redirect_uris: [`${proxy.url}connect/callback`], application_type: 'native' },
    ])
    expect((await post(proxy.url, CALL)).text).toContain('from the remote server')
    proxy.process.kill('SIGKILL')
    await proxy.ended

    const again = await startProxy(target, port)
    expect((await post(again.url, CALL)).text).toContain('from the remote server')
    await stop(again)

    const directory = await directoryOf()
    const records = await readFile(path.join(directory, 'records.json'), 'utf8')
    const token = [...(provider as unknown as { readonly tokens: ReadonlyMap<string, unknown> }).tokens.keys()][0] ?? ''
    expect(token).not.toBe('')
    expect(records + Buffer.from(records, 'base64').toString('latin1')).not.toContain(token)
    const modes = ['records.json', 'seal/key'].map(
      async (name) => (await stat(path.join(directory, name))).mode & 0o777,
    )
    expect(await Promise.all(modes)).toEqual([0o600, 0o600])
    expect(proxy.printed() + again.printed()).not.toContain(token)
  })

  it('refuses a key that others can read', async () => {
    const target = 'https://mcp.example.com/mcp'
    await stop(await startProxy(target, await freePort()))
    const key = path.join(await directoryOf(), 'seal', 'key')
    await chmod(key, 0o640)
    const refused = start('--target', target, '--listen', '127.0.0.1:0')
    expect(await refused.ended).toBe(1)
    expect(refused.stderr()).toContain(`${key}: other users can read it (mode 640), expected mode 600`)
    await chmod(key, 0o600)
    await stop(await startProxy(target, await freePort()))
  })

  it('runs once per server', async () => {
    const target = 'https://mcp.example.com/mcp'
    const first = await startProxy(target, await freePort())
    const second = start('--target', target, '--listen', '127.0.0.1:0')
    expect(await second.ended).toBe(1)
    expect(second.stderr()).toContain(`another process serves ${target}. Use that one, or stop it.`)
    const other = await startProxy('https://other.example.com/mcp', await freePort())
    await Promise.all([stop(first), stop(other)])
  })
})

it('a directory of connections is for one process: not for workers', async () => {
  const config = [
    proxyConfig({
      auth: { mode: 'anonymous' },
      connections: {
        singleUser: true,
        storage: { type: 'file', file: { directory: 'state' } },
        keySecretRefs: [{ name: 'seal', key: 'key' }],
        providers: [{ name: 'notes', type: 'secret', secret: { label: 'Key' } }],
      },
      routes: [{ name: 'a', path: '/a', target: 'http://127.0.0.1:9/mcp', externalAuthConfigRef: { name: 'own' } }],
    }),
    authConfig('own', { type: 'bearerToken', bearerToken: { connectionName: 'notes' } }),
  ]
  await writeFile(path.join(state, 'proxy.yaml'), config.join('\n---\n'))
  const args = ['--config', path.join(state, 'proxy.yaml'), '--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0']
  const refused = extauth(['proxy', ...args, '--workers', '2'])
  running.push(refused)
  expect(await refused.ended).toBe(1)
  expect(refused.stderr()).toContain('type "file" is for one process, and --workers is 2')
})
