import { createServer, type IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import type { Duplex } from 'node:stream'
import path from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { startLabIdentityProvider } from '../../../lab/index.ts'
import { createSockets } from '../../support/sockets.ts'
import { TLS } from '../../support/tls.ts'
import { extauth, type Running } from '../../support/e2e/process.ts'
import { authConfig, configFolder, proxyConfig } from '../../support/e2e/run.ts'

const KEY = 'value-of-the-key-header'
const sockets = createSockets()
let running: Running | undefined
afterEach(async () => {
  running?.process.kill('SIGKILL')
  await running?.ended
  await sockets.closeAll()
})

/** Starts `extauth proxy` with these files as its configuration directory. */
async function start(files: Record<string, string>, args: (directory: string) => string[], env = {}) {
  const { directory, remove } = await configFolder({ ...files, 'secrets/api/key': KEY })
  sockets.closing({ close: remove })
  const given = ['--config', path.join(directory, 'config'), '--secrets-dir', path.join(directory, 'secrets')]
  const free = ['--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0']
  running = extauth(['proxy', ...given, ...free, ...args(directory)], { env })
  return (await running.line('listening')) as { url: string; admin: string }
}
/** A backend that says back the target and the key that reached it. */
const echo = (request: IncomingMessage): string => `${request.url} ${String(request.headers['x-api-key'])}`
const KEY_CONFIG = {
  'config/auth.json': authConfig('key', {
    type: 'headerInjection',
    headerInjection: { headerName: 'X-Api-Key', valueSecretRef: { name: 'api', key: 'key' } },
  }),
}
const manifest = (name: string, remoteUrl: string): string =>
  JSON.stringify({
    apiVersion: 'toolhive.stacklok.dev/v1beta1',
    kind: 'MCPRemoteProxy',
    metadata: { name },
    spec: { remoteUrl, externalAuthConfigRef: { name: 'key' } },
  })

describe('several manifests with --callers', () => {
  it('are at /<name>, send exactly the path of a target that has one, and want a token', async () => {
    const clock = { now: () => Date.now() }
    const identity = sockets.closing(await startLabIdentityProvider({ port: 0, clients: [], clock }))
    const backend = await sockets.http((request, response) => response.end(echo(request)))
    const files = {
      ...KEY_CONFIG,
      'config/one.json': manifest('one', `${backend}/mcp?toolset=a`),
      'config/two.json': manifest('two', backend),
      'callers.json': JSON.stringify({
        mode: 'oauth',
        oauth: {
          resourceUrl: 'http://127.0.0.1:8080',
          providers: [{ name: 'lab', issuerUrl: identity.url, audience: 'extauth-lab' }],
        },
      }),
    }
    const { url, admin } = await start(files, (directory) => ['--callers', path.join(directory, 'callers.json')])
    const token = await identity.mint({ sub: 'alice', aud: ['extauth-lab'] })
    const get = async (target: string, headers: Record<string, string> = {}) => {
      const response = await fetch(`${url}${target}`, { headers })
      return [response.status, response.status === 200 ? await response.text() : '']
    }
    const authorization = { authorization: `Bearer ${token}` }
    expect(await get('/one')).toEqual([401, ''])
    expect(await get('/one/more?x=1', authorization)).toEqual([200, `/mcp?toolset=a&x=1 ${KEY}`])
    expect(await get('/two/more', authorization)).toEqual([200, `/more ${KEY}`])
    expect(await get('/', authorization)).toEqual([404, ''])

    const metrics = await (await fetch(`${admin}/metrics`)).text()
    for (const line of [
      'extauth_requests_total{route="one",type="headerInjection",status="200",reason=""} 1',
      'extauth_requests_total{route="one",type="headerInjection",status="401",reason="missing_token"} 1',
      'extauth_request_duration_seconds_count{route="two",type="headerInjection"} 1',
      'extauth_time_to_first_byte_seconds_count{route="two",type="headerInjection"} 1',
      'extauth_active_streams 0',
    ])
      expect(metrics.split('\n')).toContain(line)
    for (const name of ['extauth_config_reloads_total', 'extauth_secret_reload_failures_total'])
      expect(metrics).toContain(`# TYPE ${name} counter`)

    running?.process.kill('SIGTERM')
    expect(await running?.ended).toBe(0)
    const lines = running?.stderr().split('\n') ?? []
    const request = lines.find((line) => line.includes('"msg":"request"') && line.includes('"route":"two"')) ?? '{}'
    expect(JSON.parse(request)).toEqual({
      level: 30,
      time: expect.any(Number) as number,
      requestId: expect.stringMatching(/./) as string,
      route: 'two',
      type: 'headerInjection',
      method: 'GET',
      caller: expect.stringMatching(/^[0-9a-f]{16}$/) as string,
      status: 200,
      durationMs: expect.any(Number) as number,
      firstByteMs: expect.any(Number) as number,
      attempts: 1,
      msg: 'request',
    })
    expect(lines.join('\n')).not.toContain(token)
    expect(lines.join('\n')).not.toContain('alice')
  })

  it('of which --callers is broken are refused with its place', async () => {
    const { directory, remove } = await configFolder({
      ...KEY_CONFIG,
      'config/one.json': manifest('one', 'https://mcp.example.com'),
      'callers.yaml': 'mode: oauth\noauth:\n  resourceUrl: https://x.example\n  provders: []\n',
    })
    sockets.closing({ close: remove })
    const callers = path.join(directory, 'callers.yaml')
    running = extauth(['proxy', '--config', path.join(directory, 'config'), '--callers', callers])
    expect(await running.ended).toBe(1)
    expect(running.stderr()).toMatch(/callers\.yaml:4:3 .*provders.*providers/)
  })
})

describe('HTTPS_PROXY', () => {
  it('leads to the backend, is shown at the start without its password, and NO_PROXY goes past it', async () => {
    const asked: string[] = []
    const tunnel = createServer((_request, response) => void response.writeHead(405).end())
    tunnel.on('connect', (request: IncomingMessage, client: Duplex) => {
      asked.push(`${request.url} ${String(request.headers['proxy-authorization'])}`)
      const [, port] = (request.url ?? '').split(':')
      const upstream = connect(Number(port), '127.0.0.1', () => {
        client.write('HTTP/1.1 200 OK\r\n\r\n')
        upstream.pipe(client).pipe(upstream)
      })
      for (const socket of [client, upstream]) socket.on('error', () => undefined)
    })
    const proxyAddress = await sockets.listen(tunnel)
    const backend = await sockets.https(TLS.server, (request, response) => response.end(echo(request)))
    const caCertPath = new URL('../../fixtures/tls/ca.pem', import.meta.url).pathname
    const route = (name: string, target: string) => ({
      name,
      path: `/${name}`,
      target,
      externalAuthConfigRef: { name: 'key' },
      targetTls: { caCertPath },
    })
    const routes = [route('out', `${backend}/mcp`), route('in', `${backend.replace('127.0.0.1', 'localhost')}/mcp`)]
    const files = {
      ...KEY_CONFIG,
      'config/proxy.json': proxyConfig({ auth: { mode: 'anonymous' }, routes }),
    }
    const env = { HTTPS_PROXY: `http://me:my-password@${proxyAddress}`, NO_PROXY: 'localhost' }
    const { url } = await start(files, () => [], env)
    const shown = await running?.line('using an egress proxy')
    expect(shown).toMatchObject({ httpsProxy: proxyAddress, noProxy: 'localhost' })
    expect(await (await fetch(`${url}/out`)).text()).toBe(`/mcp ${KEY}`)
    const credentials = Buffer.from('me:my-password').toString('base64')
    expect(asked).toEqual([`${new URL(backend).host} Basic ${credentials}`])
    expect(await (await fetch(`${url}/in`)).text()).toBe(`/mcp ${KEY}`)
    expect(asked).toHaveLength(1)
    expect(running?.stderr()).not.toContain('my-password')
  })
})

describe('wrong words', () => {
  it.each([
    ['no sources', ['proxy'], '--config PATH'],
    ['half of the short form', ['proxy', '--target', 'https://x.example'], 'must be given together'],
    ['an unknown option', ['proxy', '--confg', 'x'], 'Did you mean --config?'],
    ['no file to validate', ['validate'], 'needs a FILE or DIR'],
    ['an unknown command', ['prxy'], 'unknown command "prxy"'],
  ])('%s: exit code 2 and what would be right', async (_, args, expected) => {
    running = extauth(args)
    expect(await running.ended).toBe(2)
    expect(running.stderr()).toContain(expected)
  })
})

describe('a reader that wants no more', () => {
  it('of a long output does not make the command fail', async () => {
    running = extauth(['schema', '--all'])
    running.process.stdout?.once('data', () => running?.process.stdout?.destroy())
    expect(await running.ended).toBe(0)
    expect(running.stderr()).toBe('')
  })
})
