import { once } from 'node:events'
import { Agent, type IncomingMessage, request as httpRequest } from 'node:http'
import { createServer } from 'node:net'
import path from 'node:path'
import { connect as connectTls } from 'node:tls'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { startLabBackend, startLabIdentityProvider, LAB_AUDIENCE } from '../../../lab/index.ts'
import { Secret } from '../../../src/core/index.ts'
import { createSockets } from '../../support/sockets.ts'
import { TLS } from '../../support/tls.ts'
import { CALL, exchangeConfig, MCP } from '../../support/e2e/credentials.ts'
import { INITIALIZE } from '../../support/e2e/lab.ts'
import { extauth } from '../../support/e2e/process.ts'
import { authConfig, configFolder, proxyConfig } from '../../support/e2e/run.ts'
import { alone, runWorkersProcess, type WorkersProxy } from '../../support/e2e/workers.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const SECRET = 'a-secret-of-the-proxy'
const TOKEN = 'token-of-the-backend'

/** A proxy of two workers with a route that exchanges tokens, one with a static token, and one that is slow. */
async function openWorld(options: { readonly listen?: string; readonly spec?: object; readonly args?: string[] } = {}) {
  const identity = sockets.closing(
    await startLabIdentityProvider({
      port: 0,
      clock: Date,
      clients: [{ id: 'one', secret: new Secret(SECRET), may: ['exchange'], audiences: ['one'] }],
    }),
  )
  const { url: issuer, jwks: keys, isRevoked } = identity
  const backend = sockets.closing(
    await startLabBackend({
      port: 0,
      clock: Date,
      mounts: {
        '/one': { kind: 'jwt', issuer, audience: 'one', keys, isRevoked },
        '/static': { kind: 'bearer', token: new Secret(TOKEN) },
      },
    }),
  )
  const halfway: (() => void)[] = []
  const slow = await sockets.http((_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' })
    response.write('{"half":')
    halfway.push(() => response.end('1}'))
  })
  const arrived = (count: number) => vi.waitFor(() => expect(halfway).toHaveLength(count), 30_000)
  const release = (): void => {
    for (const finish of halfway.splice(0)) finish()
  }
  const route = (name: string, target: string) => ({
    name,
    path: `/${name}`,
    target,
    externalAuthConfigRef: { name },
    resourceUrl: `http://127.0.0.1/${name}`,
  })
  const files = {
    'one.json': exchangeConfig('one', `${issuer}/token`),
    'static.json': authConfig('static', {
      type: 'bearerToken',
      bearerToken: { tokenSecretRef: { name: 'backend', key: 'token' } },
    }),
    'slow.json': authConfig('slow', { type: 'unauthenticated' }),
    'proxy.json': proxyConfig({
      auth: {
        mode: 'oauth',
        oauth: {
          resourceUrl: 'http://127.0.0.1/',
          providers: [{ name: 'lab', issuerUrl: issuer, audience: LAB_AUDIENCE }],
        },
      },
      routes: [
        route('one', `${backend.url}/one/mcp`),
        route('static', `${backend.url}/static/mcp`),
        route('slow', slow),
      ],
      ...options.spec,
    }),
    'secrets/one/secret': SECRET,
    'secrets/backend/token': TOKEN,
  }
  const proxy = await runWorkersProcess(sockets, files, options)
  const bearer = async (sub: string) => ({ authorization: `Bearer ${await identity.mint({ ttlSeconds: 3_600, sub })}` })
  return { proxy, identity, bearer, arrived, release }
}

const call = (proxy: WorkersProxy, route: string, headers: Record<string, string>) =>
  alone(`${proxy.url}/${route}`, { headers: { ...MCP, ...headers }, body: CALL })

describe('extauth proxy --workers 2', () => {
  it('speaks with one voice: metrics, cache, purge and reload are those of both', async () => {
    const { proxy, identity, bearer } = await openWorld()
    expect(proxy.running.stdout().match(/^proxy at/gm)).toHaveLength(1)
    expect(await proxy.pids()).toHaveLength(2)
    const alice = await bearer('alice')
    for (let round = 0; round < 4; round += 1) expect((await call(proxy, 'one', alice)).status).toBe(200)
    // Each worker has a cache of its own.
    expect(identity.calls('exchange')).toBe(2)
    expect(await proxy.metric('extauth_workers')).toBe(2)
    expect(await proxy.metric('extauth_requests_total{route="one",type="tokenExchange",status="200",reason=""}')).toBe(
      4,
    )
    expect((await proxy.admin('/cache')).json).toMatchObject({ entries: 2, groups: [{ count: 2 }] })
    expect((await proxy.admin('/cache?subject=alice', 'DELETE')).json).toEqual({ purged: 2 })
    expect((await proxy.admin('/cache')).json).toMatchObject({ entries: 0 })
    for (let round = 0; round < 4; round += 1) expect((await call(proxy, 'one', alice)).status).toBe(200)
    expect(identity.calls('exchange')).toBe(4)
    expect((await proxy.admin('/config')).json).toMatchObject({ routes: [{ name: 'one' }, {}, {}] })
    expect((await proxy.admin('/readiness')).json).toEqual({ status: 'ready' })

    // Lines of both say which one wrote them.
    const pids = await proxy.pids()
    const lines = () => proxy.running.stderr().match(/^.*"msg":"request"}$/gm) ?? []
    const writers = () => new Set(lines().map((line) => (JSON.parse(line) as { worker?: number }).worker))
    await vi.waitFor(() => expect(writers()).toEqual(new Set(pids)), 10_000)

    const config = proxy.directory
    await proxy.write('proxy.json', '{"kind": "ProxyConfig"')
    const refused = await proxy.admin('/reload', 'POST')
    expect(refused.status).toBe(422)
    expect(JSON.stringify(refused.json)).toContain(config)
    expect((await call(proxy, 'one', alice)).status).toBe(200)
  }, 120_000)

  it('lets a session go on at whichever worker gets its next request', async () => {
    const { proxy, bearer } = await openWorld()
    const headers = await bearer('alice')
    const opened = await alone(`${proxy.url}/static`, { headers, body: INITIALIZE })
    const session = String(opened.headers['mcp-session-id'])
    expect(session).toContain('.')
    const list = { jsonrpc: '2.0', id: 2, method: 'tools/list' }
    for (let round = 0; round < 4; round += 1) {
      const answer = await alone(`${proxy.url}/static`, {
        headers: { ...headers, 'mcp-session-id': session },
        body: list,
      })
      expect(answer.status).toBe(200)
    }
  }, 120_000)

  it('replaces a worker that was killed, while requests at the other one go on', async () => {
    const { proxy, bearer, arrived, release } = await openWorld()
    const alice = await bearer('alice')
    for (let round = 0; round < 4; round += 1) await call(proxy, 'static', alice)
    const ok = 'extauth_requests_total{route="static",type="bearerToken",status="200",reason=""}'
    expect(await proxy.metric(ok)).toBe(4)
    const [victim] = await proxy.pids()
    // Two connections in the middle of an answer, one at each worker.
    const slow = [call(proxy, 'slow', alice), call(proxy, 'slow', alice)]
    await arrived(2)
    process.kill(victim ?? 0, 'SIGKILL')
    // The stream of the dead worker ends with an error; the other has all the time that it needs.
    await Promise.race(
      slow.map((one) =>
        one.then(
          () => new Promise(() => undefined),
          () => undefined,
        ),
      ),
    )
    release()
    const outcomes = await Promise.allSettled(slow)
    expect(outcomes.filter(({ status }) => status === 'rejected')).toHaveLength(1)
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    const statuses = await Promise.all(Array.from({ length: 20 }, () => call(proxy, 'static', alice)))
    expect(new Set(statuses.map(({ status }) => status))).toEqual(new Set([200]))
    await vi.waitFor(async () => expect((await proxy.admin('/readiness')).json).toEqual({ status: 'ready' }), 60_000)
    expect(await proxy.pids()).not.toContain(victim)
    expect(await proxy.metric('extauth_worker_ends_total{reason="crashed"}')).toBe(1)
    // Nothing that was counted before is forgotten.
    expect(await proxy.metric(ok)).toBe(24)
    expect(proxy.running.stderr()).toContain('starting a replacement')
  }, 120_000)

  it('drains all workers on SIGTERM; none outlives a supervisor that is killed', async () => {
    const { proxy, bearer, arrived, release } = await openWorld({ args: ['--drain-grace', '60s'] })
    const alice = await bearer('alice')
    const slow = [call(proxy, 'slow', alice), call(proxy, 'slow', alice)]
    await arrived(2)
    proxy.running.process.kill('SIGTERM')
    await proxy.running.line('stopping')
    release()
    expect((await Promise.all(slow)).map(({ body }) => body)).toEqual(['{"half":1}', '{"half":1}'])
    expect(await proxy.running.ended).toBe(0)

    const second = (await openWorld()).proxy
    const pids = await second.pids()
    expect(pids).toHaveLength(2)
    second.running.process.kill('SIGKILL')
    await second.running.ended
    const isThere = (pid: number): boolean => {
      try {
        return process.kill(pid, 0)
      } catch {
        return false
      }
    }
    await vi.waitFor(() => expect(pids.filter(isThere)).toEqual([]), 10_000)
  }, 120_000)

  it('does not wait on SIGTERM for clients without a request', async () => {
    const { proxy, bearer } = await openWorld({ args: ['--drain-grace', '10m'] })
    const agent = new Agent({ keepAlive: true })
    sockets.closing({ close: () => agent.destroy() })
    const json = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
    const headers = { ...json, ...MCP, ...(await bearer('alice')) }
    for (let round = 0; round < 2; round += 1) {
      const request = httpRequest(`${proxy.url}/static`, { method: 'POST', headers, agent })
      request.end(JSON.stringify(CALL))
      const [response] = (await once(request, 'response')) as [IncomingMessage]
      expect(response.resume().statusCode).toBe(200)
      await once(response, 'end')
    }
    proxy.running.process.kill('SIGTERM')
    expect(await proxy.running.ended).toBe(0)
  }, 120_000)

  it('serves TLS, whose sessions are resumed at either worker', async () => {
    const files = { 'tls/cert.pem': TLS.server.cert.toString(), 'tls/key.pem': TLS.server.key.toString() }
    const folder = await configFolder(files)
    sockets.closing({ close: () => folder.remove() })
    const at = (name: string) => path.join(folder.directory, 'tls', name)
    const tls = { certFile: at('cert.pem'), keyFile: at('key.pem') }
    const { proxy } = await openWorld({ spec: { listen: { tls } } })
    const port = Number(new URL(proxy.url).port)
    const handshake = (session?: Buffer): Promise<{ session: Buffer; isReused: boolean }> =>
      new Promise((resolve, reject) => {
        const socket = connectTls({
          port,
          host: '127.0.0.1',
          ca: TLS.ca,
          maxVersion: 'TLSv1.2',
          ...(session && { session }),
        })
        socket.once('error', reject)
        socket.once('session', (ticket: Buffer) =>
          socket.end(() => resolve({ session: ticket, isReused: socket.isSessionReused() })),
        )
        socket.once('secureConnect', () => {
          if (socket.isSessionReused()) resolve({ session: session ?? Buffer.alloc(0), isReused: true })
        })
      })
    const { session } = await handshake()
    const again = [await handshake(session), await handshake(session), await handshake(session)]
    expect(again.map(({ isReused }) => isReused)).toEqual([true, true, true])
  }, 120_000)

  it('listens on a Unix socket, also where a killed proxy left one', async () => {
    const folder = await configFolder({})
    sockets.closing({ close: () => folder.remove() })
    const socketPath = path.join(folder.directory, 'proxy.sock')
    const first = await openWorld({ listen: `unix:${socketPath}` })
    first.proxy.running.process.kill('SIGKILL')
    await first.proxy.running.ended
    const { bearer } = await openWorld({ listen: `unix:${socketPath}` })
    const headers = { ...MCP, ...(await bearer('alice')) }
    const answers = await Promise.all(
      [1, 2, 3, 4].map(() => alone('http://localhost/static', { socketPath, headers, body: CALL })),
    )
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200])
  }, 120_000)
})

describe('the start of several workers', () => {
  const refused = async (files: Record<string, string>, args: readonly string[]) => {
    const folder = await configFolder(files)
    sockets.closing({ close: () => folder.remove() })
    const running = extauth(['proxy', '--config', folder.directory, '--workers', '2', ...args])
    sockets.closing({ close: () => running.process.kill('SIGKILL') })
    return { code: await running.ended, text: running.stderr() }
  }
  const open = {
    'auth.json': authConfig('none', { type: 'unauthenticated' }),
    'proxy.json': proxyConfig({
      auth: { mode: 'anonymous' },
      routes: [{ name: 'a', path: '/a', target: 'http://127.0.0.1:9/mcp', externalAuthConfigRef: { name: 'none' } }],
    }),
  }

  it('says what one process would say, once', async () => {
    const blocker = createServer()
    const taken = await sockets.listen(blocker)
    const inUse = await refused(open, ['--listen', taken, '--admin', '127.0.0.1:0'])
    expect(inUse.code).toBe(1)
    expect(inUse.text).toContain('in use')
    expect(inUse.text.match(/cannot listen/g)).toHaveLength(1)
    const admin = await refused(open, ['--listen', '127.0.0.1:0', '--admin', taken])
    expect(admin).toMatchObject({ code: 1 })
    expect(admin.text).toContain('in use')
    const broken = await refused({ ...open, 'proxy.json': '{' }, ['--listen', '127.0.0.1:0'])
    expect(broken.code).toBe(1)
    expect(broken.text.match(/nothing was started/g)).toHaveLength(1)
  }, 120_000)
})
