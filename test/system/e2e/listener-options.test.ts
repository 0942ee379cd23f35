import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { connect as connectTls } from 'node:tls'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { type LabIdentityProvider, startLabBackend, startLabIdentityProvider } from '../../../lab/index.ts'
import { rawConnect } from '../../support/raw.ts'
import { createSockets } from '../../support/sockets.ts'
import { TLS } from '../../support/tls.ts'
import { INITIALIZE, post } from '../../support/e2e/lab.ts'
import { authConfig, proxyConfig, run, type RunningTestProxy } from '../../support/e2e/run.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

/** The real proxy with one open route and this `listen` and more in its ProxyConfig; the addresses are the file's. */
async function start(listen: object, spec: object = {}, extra: Record<string, string> = {}) {
  const target = await sockets.http((_request, response) => response.end('served'))
  const proxy = await run(
    {
      'auth.json': authConfig('none', { type: 'unauthenticated' }),
      'proxy.json': proxyConfig({
        listen: { address: '127.0.0.1:0', ...listen },
        admin: { address: '127.0.0.1:0' },
        auth: { mode: 'anonymous' },
        routes: [{ name: 'all', path: '/', target, externalAuthConfigRef: { name: 'none' } }],
        ...spec,
      }),
      ...extra,
    },
    { listen: undefined, admin: undefined },
  )
  return sockets.closing(proxy)
}

const statusOf = async (proxy: RunningTestProxy, head: string): Promise<string> => {
  const client = rawConnect(proxy.url, `GET / HTTP/1.1\r\nConnection: close\r\n${head}\r\n\r\n`)
  const answer = await client.until(/^HTTP\/1\.1 \d{3} /)
  client.socket.destroy()
  return answer.slice(9, 12)
}

describe('listen.connectionLimit', () => {
  it('closes what is over it', async () => {
    const proxy = await start({ connectionLimit: 2 })
    const held = [1, 2].map(() => rawConnect(proxy.url, 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n'))
    for (const client of held) await client.until(/served/)
    const refused = rawConnect(proxy.url, 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
    await refused.ended
    expect(refused.text()).toBe('')
    const metrics = await (await fetch(`${proxy.adminUrl}/metrics`)).text()
    expect(metrics).toContain('extauth_connections_refused_total{reason="limit"} 1')
    for (const { socket } of held) socket.destroy()
  })
})

describe('listen.trustedProxies', () => {
  const seenThrough = async (listen: object): Promise<string> => {
    const target = await sockets.http((request, response) =>
      response.end([request.headers['forwarded'], request.headers['x-forwarded-for']].join(' ')),
    )
    const routes = [{ name: 'all', path: '/', target, externalAuthConfigRef: { name: 'none' } }]
    const proxy = await start(listen, { routes })
    const headers = { 'x-forwarded-for': '8.8.8.8, 203.0.113.5', 'x-forwarded-proto': 'https' }
    return (await fetch(proxy.url, { headers })).text()
  }

  it('may name the client, and the backend receives it', async () => {
    const seen = await seenThrough({ trustedProxies: ['127.0.0.0/8'] })
    expect(seen).toMatch(/^for=203\.0\.113\.5;host="[^"]+";proto=https 203\.0\.113\.5$/)
  })

  it('are the only ones who may', async () => {
    const seen = await seenThrough({ trustedProxies: ['10.0.0.0/8'] })
    expect(seen).toMatch(/^for=127\.0\.0\.1;host="[^"]+";proto=http 127\.0\.0\.1$/)
  })
})

describe('listen.allowedHosts and listen.allowedOrigins', () => {
  it('let in what they list, beside what a loopback bind implies', async () => {
    const proxy = await start({ allowedHosts: ['mcp.internal'], allowedOrigins: ['https://app.example.com'] })
    expect(await statusOf(proxy, 'Host: mcp.internal:80')).toBe('200')
    expect(await statusOf(proxy, 'Host: localhost')).toBe('200')
    expect(await statusOf(proxy, 'Host: rebound.example')).toBe('403')
    expect(await statusOf(proxy, 'Host: localhost\r\nOrigin: https://app.example.com')).toBe('200')
    expect(await statusOf(proxy, 'Host: localhost\r\nOrigin: https://evil.example')).toBe('403')
  })
})

describe('listen.tls', () => {
  it('serves the files, and renewed ones without a restart', async () => {
    const folder = mkdtempSync(path.join(os.tmpdir(), 'extauth-tls-'))
    sockets.closing({ close: () => rmSync(folder, { recursive: true }) })
    const put = ({ cert, key }: { cert: Buffer; key: Buffer }): void => {
      writeFileSync(path.join(folder, 'tls.crt'), cert)
      writeFileSync(path.join(folder, 'tls.key'), key)
    }
    put(TLS.server)
    const proxy = await start({
      tls: { certFile: path.join(folder, 'tls.crt'), keyFile: path.join(folder, 'tls.key') },
    })
    expect(proxy.url).toMatch(/^https:/)
    const isTrustedBy = (ca: Buffer): Promise<boolean> =>
      new Promise((resolve) => {
        const socket = connectTls({ host: '127.0.0.1', port: Number(new URL(proxy.url).port), ca })
        socket.once('secureConnect', () => resolve(true)).once('error', () => resolve(false))
        socket.once('secureConnect', () => socket.destroy())
      })
    expect(await isTrustedBy(TLS.ca)).toBe(true)
    put(TLS.otherServer)
    await vi.waitFor(async () => expect(await isTrustedBy(TLS.otherCa)).toBe(true), 10_000)
    expect(await isTrustedBy(TLS.ca)).toBe(false)
  })

  it('without a usable pair is refused, with the names of the files', async () => {
    const files = { 'a.crt': TLS.server.cert.toString(), 'a.key': TLS.otherServer.key.toString() }
    await expect(start({ tls: { certFile: 'a.crt', keyFile: 'a.key' } }, {}, files)).rejects.toMatchObject({
      lines: [expect.stringMatching(/a\.crt and .*a\.key; both must be PEM and match/)],
    })
  })
})

describe('admin.tokenFile', () => {
  it('is the bearer of the guarded endpoints on an open bind, and is read again when it changes', async () => {
    const folder = mkdtempSync(path.join(os.tmpdir(), 'extauth-admin-'))
    sockets.closing({ close: () => rmSync(folder, { recursive: true }) })
    const tokenFile = path.join(folder, 'token')
    writeFileSync(tokenFile, 'the-first-token\n')
    const proxy = await start({}, { admin: { address: '0.0.0.0:0', tokenFile } })
    const url = proxy.adminUrl.replace(/\/\/[^:]+:/, '//127.0.0.1:')
    const config = async (token?: string): Promise<number> => {
      const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
      return (await fetch(`${url}/config`, { headers })).status
    }
    expect((await fetch(`${url}/health`)).status).toBe(200)
    expect([await config(), await config('wrong')]).toEqual([401, 401])
    expect(await config('the-first-token')).toBe(200)
    writeFileSync(tokenFile, 'the-second-token\n')
    await vi.waitFor(async () => expect(await config('the-second-token')).toBe(200), 10_000)
    expect(await config('the-first-token')).toBe(401)
  })
})

describe('sessionKeySecretRef', () => {
  let identity: LabIdentityProvider

  /** A replica with callers; `key` is what is in its session key secret. */
  async function replica(target: string, key: string | undefined): Promise<RunningTestProxy> {
    const auth = {
      mode: 'oauth',
      oauth: {
        resourceUrl: 'http://127.0.0.1:8080',
        providers: [{ name: 'lab', issuerUrl: identity.url, audience: 'extauth-lab' }],
      },
    }
    const routes = [{ name: 'all', path: '/', target, externalAuthConfigRef: { name: 'none' } }]
    const sessionKeySecretRef = { name: 'sessions', key: 'key' }
    const shared = key === undefined ? {} : { sessionKeySecretRef }
    return start({}, { auth, routes, ...shared }, key === undefined ? {} : { 'secrets/sessions/key': key })
  }

  it('lets replicas take each other’s sessions; without it, or with another key, they do not', async () => {
    const clock = { now: () => Date.now() }
    identity = sockets.closing(await startLabIdentityProvider({ port: 0, clients: [], clock }))
    const backend = sockets.closing(await startLabBackend({ port: 0, mounts: { '/a': { kind: 'none' } }, clock }))
    const target = `${backend.url}/a/mcp`
    const key = 'a-key-that-is-long-enough-for-an-hmac-0123456789'
    const [first, second, other, alone] = [
      await replica(target, key),
      await replica(target, key),
      await replica(target, `${key}-another`),
      await replica(target, undefined),
    ]
    const headers = { authorization: `Bearer ${await identity.mint({ sub: 'alice', aud: ['extauth-lab'] })}` }
    const opened = await post(first.url, INITIALIZE, headers)
    const session = opened.headers.get('mcp-session-id') ?? ''
    expect([opened.status, session]).toEqual([200, expect.stringMatching(/\../)])
    const list = async ({ url }: RunningTestProxy): Promise<number> => {
      const call = { jsonrpc: '2.0', id: 2, method: 'tools/list' }
      return (await post(url, call, { ...headers, 'mcp-session-id': session })).status
    }
    expect([await list(first), await list(second)]).toEqual([200, 200])
    expect([await list(other), await list(alone)]).toEqual([404, 404])
  })
})
