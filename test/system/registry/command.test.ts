import { createServer as createHttpServer } from 'node:http'
import { createServer, type AddressInfo } from 'node:net'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Io } from '../../../src/compose/index.ts'
import { runRegistry } from '../../../src/cli/registry.ts'
import { runRegistryServer, type RunningRegistry } from '../../../src/compose/registry/run-registry.ts'
import { Secret } from '../../../src/core/index.ts'
import { startLabIdentityProvider, type LabIdentityProvider } from '../../../lab/index.ts'
import { get, idsOf, recordingLog, SERVERS, SILENT } from '../../support/registry/setup.ts'

const CONFIG = path.join(import.meta.dirname, '../../../config')
const FREE = '127.0.0.1:0'

interface Call {
  readonly code: Promise<number>
  readonly out: () => string
  readonly err: () => string
  readonly stop: () => void
  /** Reloads as SIGHUP does. */
  readonly hangUp: () => void
}

/** Runs the command as `extauth registry …` would. */
function call(argv: readonly string[], env: Record<string, string> = {}): Call {
  let [out, err] = ['', '']
  let hangUp = (): void => undefined
  const stop = Promise.withResolvers<string>()
  const io: Io = {
    stdout: (text) => void (out += text),
    stderr: (text) => void (err += text),
    env,
    stdin: () => Promise.resolve(''),
    stop: stop.promise,
    onReload: (listener) => void (hangUp = listener),
  }
  const code = runRegistry(argv, io)
  return { code, out: () => out, err: () => err, stop: () => stop.resolve('SIGTERM'), hangUp: () => hangUp() }
}

async function urlsOf({ out }: Call): Promise<{ main: { url: string }; internal: { url: string } }> {
  await expect.poll(out, { timeout: 10_000 }).toContain('internal server at')
  const match = /registry at (\S+), internal server at (\S+)\n/.exec(out())
  return { main: { url: match?.[1] ?? '' }, internal: { url: match?.[2] ?? '' } }
}

let directory: string
beforeAll(() => {
  directory = mkdtempSync(path.join(tmpdir(), 'registry-command-'))
})
afterAll(() => rmSync(directory, { recursive: true }))

const written = (name: string, text: string): string => {
  writeFileSync(path.join(directory, name), text)
  return path.join(directory, name)
}

async function refused(argv: string[]) {
  const { code, err } = call(argv)
  return { code: await code, err: err() }
}

describe('extauth registry', () => {
  it('serves config/registry.yaml as it is to anybody, health and the like elsewhere, and stops with exit code 0', async () => {
    const running = call(['--config', path.join(CONFIG, 'registry.yaml'), '--address', FREE, '--log-level', 'silent'], {
      EXTAUTH_INTERNAL_ADDRESS: FREE,
    })
    const { main, internal } = await urlsOf(running)
    expect(idsOf(await get(main, SERVERS))).toHaveLength(4)
    const latest = await get(main, `${SERVERS}/com.example%2Fweather/versions/latest`)
    expect(latest.json).toMatchObject({ server: { version: '1.1.0' } })
    expect((await get(main, '/.well-known/oauth-protected-resource')).json).toEqual({
      resource: main.url,
      bearer_methods_supported: ['header'],
      resource_documentation: `${main.url}/openapi.json`,
    })
    for (const path of ['/health', '/readiness', '/version', '/metrics']) {
      expect([path, (await get(main, path)).status]).toEqual([path, 404])
      expect([path, (await get(internal, path)).status]).toEqual([path, 200])
    }
    expect((await get(internal, '/metrics')).text).toContain('extauth_registry_entries{registry="default"} 4')
    running.stop()
    expect(await running.code).toBe(0)
    await expect(get(main, SERVERS)).rejects.toMatchObject({ code: 'ECONNREFUSED' })
  })

  it('reads another registry over the network, and looks at it again on SIGHUP', async () => {
    let version = '1.0.0'
    const upstream = createHttpServer((_request, response) => {
      response.end(JSON.stringify([{ name: 'com.example/far', version, description: 'Far away' }]))
    }).listen(0, '127.0.0.1')
    await new Promise((resolve) => upstream.once('listening', resolve))
    const url = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}/list.json`
    const config = written(
      'far.yaml',
      `auth: {mode: anonymous}\nregistries: [{name: default, source: {url: '${url}'}}]`,
    )
    const free = ['--address', FREE, '--internal-address', FREE, '--log-level', 'silent']
    const running = call(['--config', config, ...free])
    const { main } = await urlsOf(running)
    expect(idsOf(await get(main, SERVERS))).toEqual(['com.example/far 1.0.0'])
    version = '2.0.0'
    expect(idsOf(await get(main, SERVERS))).toEqual(['com.example/far 1.0.0'])
    running.hangUp()
    await expect.poll(async () => idsOf(await get(main, SERVERS))).toEqual(['com.example/far 2.0.0'])
    running.stop()
    expect(await running.code).toBe(0)
    upstream.close()
  })

  it('needs a file, and words that it knows', async () => {
    expect(await refused([])).toEqual({ code: 2, err: expect.stringContaining('needs --config FILE') as string })
    expect(await refused(['--config', 'x', '--log-level', 'loud'])).toEqual({
      code: 2,
      err: expect.stringContaining('--log-level') as string,
    })
    expect(await refused(['--config', 'x', '--drain-grace', 'soon'])).toEqual({
      code: 2,
      err: expect.stringContaining('--drain-grace') as string,
    })
  })

  it.each([
    ['auth missing, which is mode oauth without providers', 'registries: [{name: a, source: {file: x}}]', 'providers'],
    ['an unknown field', 'auth: {mode: anonymous}\nregistrys: []', 'registries'],
    [
      'two kinds of source',
      'auth: {mode: anonymous}\nregistries: [{name: a, source: {file: x, url: "https://x"}}]',
      'exactly one',
    ],
    ['public paths that open everything', 'auth: {mode: oauth, publicPaths: ["/"]}\nregistries: []', 'publicPaths'],
  ])('refuses a file with %s: exit code 1 and the place', async (_, text, expected) => {
    const file = written('broken.yaml', text)
    const running = call(['--config', file, '--address', FREE, '--internal-address', FREE, '--log-level', 'silent'])
    expect(await running.code).toBe(1)
    expect(running.err()).toContain(`${file}:`)
    expect(running.err()).toContain(expected)
  })

  it('says which address is taken', async () => {
    const taken = createServer().listen(0, '127.0.0.1')
    await new Promise((resolve) => taken.once('listening', resolve))
    const address = `127.0.0.1:${(taken.address() as AddressInfo).port}`
    for (const option of ['--address', '--internal-address']) {
      const other = option === '--address' ? '--internal-address' : '--address'
      const config = path.join(CONFIG, 'registry.yaml')
      const running = call(['--config', config, option, address, other, FREE, '--log-level', 'silent'])
      expect(await running.code).toBe(1)
      expect(running.err()).toContain(`cannot listen on ${address}: EADDRINUSE. The address is in use`)
    }
    taken.close()
  })

  it('is ready, but not well, while the keys of an identity provider never came', async () => {
    const provider = '{name: gone, issuerUrl: "http://127.0.0.1:1", audience: a}'
    const auth = `auth: {mode: oauth, oauth: {resourceUrl: "http://127.0.0.1:1", providers: [${provider}]}}`
    written('empty.json', '[]')
    const running = await runRegistryServer({
      configPath: written('gone.yaml', `${auth}\nregistries: [{name: default, source: {file: empty.json}}]`),
      address: FREE,
      internalAddress: FREE,
      env: {},
      log: SILENT,
    })
    await expect
      .poll(async () => (await get({ url: running.internalUrl }, '/readiness')).json, { timeout: 10_000 })
      .toMatchObject({ status: 'degraded', detail: { providersWithoutKeys: ['gone'] } })
    const metrics = await get({ url: running.internalUrl }, '/metrics')
    expect(metrics.text).toContain('extauth_provider_keys{name="gone"} 0')
    await running.close()
  })

  it('is not ready without data, and serves the rest', async () => {
    const file = written(
      'missing.yaml',
      'auth: {mode: anonymous}\nregistries: [{name: default, source: {file: nowhere.json}}]',
    )
    const running = await runRegistryServer({
      configPath: file,
      address: FREE,
      internalAddress: FREE,
      env: {},
      log: SILENT,
    })
    const readiness = await get({ url: running.internalUrl }, '/readiness')
    expect([readiness.status, readiness.json]).toEqual([
      503,
      { status: 'unavailable', detail: { registries: { default: { entries: 0, problem: 'missing' } } } },
    ])
    expect((await get(running, SERVERS)).status).toBe(503)
    expect((await get(running, '/openapi.json')).status).toBe(200)
    await running.close()
  })
})

describe('extauth registry in mode oauth, with the lab for identity provider', () => {
  let identity: LabIdentityProvider
  let registry: RunningRegistry
  const log = recordingLog()

  beforeAll(async () => {
    const secret = readFileSync(path.join(CONFIG, 'lab/secrets/lab-introspection/client-secret'), 'utf8').trim()
    const clients = [{ id: 'lab-introspection', secret: new Secret(secret), may: ['introspect' as const] }]
    identity = await startLabIdentityProvider({ port: 0, clients, clock: { now: () => Date.now() } })
    // The example as it is, but for the port of the identity provider and where the files are.
    const text = readFileSync(path.join(CONFIG, 'registry-oauth.yaml'), 'utf8')
      .replaceAll('http://127.0.0.1:8082', identity.url)
      .replaceAll(/: \.\//g, `: ${CONFIG}/`)
    const configPath = written('oauth.yaml', text)
    registry = await runRegistryServer({ configPath, address: FREE, internalAddress: FREE, env: {}, log })
  })
  afterAll(async () => {
    await registry.close()
    await identity.close()
  })

  const list = async (token: string) => get(registry, SERVERS, { headers: { authorization: `Bearer ${token}` } })

  it.each([false, true])('serves callers with a token for it (opaque: %s)', async (opaque) => {
    const token = await identity.mint({ sub: 'alice', aud: ['mcp-registry'], opaque })
    const got = await list(token)
    expect([got.status, idsOf(got).length]).toEqual([200, 4])
    expect(log.lines.join('\n')).not.toContain(token)
  })

  it.each([
    ['another audience', { sub: 'alice', aud: ['elsewhere'] }],
    ['another audience, opaque', { sub: 'alice', aud: ['elsewhere'], opaque: true }],
    ['no life left', { sub: 'alice', aud: ['mcp-registry'], ttlSeconds: -60 }],
  ])('answers 401 to a token with %s', async (_, wanted) => {
    const got = await list(await identity.mint(wanted))
    expect(got.status).toBe(401)
    expect(got.headers['www-authenticate']).toContain('error="invalid_token"')
  })

  it('lets a client that knows nothing find the way to a token', async () => {
    const refused = await get(registry, SERVERS)
    expect(refused.status).toBe(401)
    expect(refused.headers['www-authenticate']).toBe(
      'Bearer realm="mcp-registry", resource_metadata="http://127.0.0.1:8090/.well-known/oauth-protected-resource"',
    )
    expect((await get(registry, '/.well-known/oauth-protected-resource')).json).toEqual({
      resource: 'http://127.0.0.1:8090',
      authorization_servers: [identity.url],
      scopes_supported: ['mcp-registry:read', 'mcp-registry:write'],
      bearer_methods_supported: ['header'],
      resource_documentation: 'http://127.0.0.1:8090/openapi.json',
    })
  })
})
