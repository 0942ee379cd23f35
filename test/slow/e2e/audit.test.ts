import { afterEach, describe, expect, it } from 'vitest'
import { createSockets } from '../../support/sockets.ts'
import type { Running } from '../../support/e2e/process.ts'
import { authConfig, proxyConfig } from '../../support/e2e/run.ts'
import { startWith } from '../../support/e2e/stopping/held.ts'
import { alone } from '../../support/e2e/workers.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const segment = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
const header = { alg: 'RS256', kid: 'a-key' }
const payload = { iss: 'https://idp.example/', sub: 'private-subject', client_id: 'an-agent', aud: 'elsewhere' }
const TOKEN = `${segment(header)}.${segment(payload)}.c2lnbmF0dXJl`
const BEARER = { authorization: `Bearer ${TOKEN}` }
const AUTH = {
  mode: 'oauth',
  oauth: {
    resourceUrl: 'http://127.0.0.1/',
    providers: [{ name: 'idp', issuerUrl: 'http://127.0.0.1:1', audience: 'a' }],
  },
}

const proxy = (...args: string[]): Promise<Running> =>
  startWith(
    sockets,
    {
      'auth.json': authConfig('none', { type: 'unauthenticated' }),
      'proxy.json': proxyConfig({
        listen: { trustedProxies: ['127.0.0.0/8'] },
        auth: AUTH,
        routes: [
          { name: 'r', path: '/r', target: 'http://127.0.0.1:9', externalAuthConfigRef: { name: 'none' } },
          {
            name: 'open',
            path: '/open',
            target: 'http://127.0.0.1:9',
            externalAuthConfigRef: { name: 'none' },
            auth: { mode: 'anonymous' },
          },
        ],
      }),
    },
    ['proxy', '--config', '{dir}', '--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0', ...args],
  )

const registry = (...args: string[]): Promise<Running> =>
  startWith(
    sockets,
    {
      'registry.json': JSON.stringify({
        trustedProxies: ['127.0.0.0/8'],
        auth: AUTH,
        registries: [{ name: 'default', source: { file: 'servers.json' } }],
      }),
      'servers.json': '[]',
    },
    [
      'registry',
      '--config',
      '{dir}/registry.json',
      '--address',
      '127.0.0.1:0',
      '--internal-address',
      '127.0.0.1:0',
      ...args,
    ],
  )

/** The line of one request, as it is in the log. */
async function lineOf(running: Running, path: string, headers: Record<string, string> = {}, method = 'POST') {
  const { url } = (await running.line('listening')) as { url: string }
  const sent = { 'user-agent': `curl/8.0 ${'x'.repeat(300)}`, 'x-forwarded-for': '192.0.2.7', ...headers }
  const { headers: answered } = await alone(`${url}${path}`, {
    method,
    ...(method === 'POST' ? { body: {} } : {}),
    headers: sent,
  })
  const id = String(answered['x-request-id'])
  await expect.poll(running.stderr).toContain(id)
  const lines = running.stderr().split('\n')
  const line = lines.find((one) => one.includes('"msg":"request"') && one.includes(id)) ?? '{}'
  expect(line).not.toContain('private-subject')
  expect(line).not.toContain('c2lnbmF0dXJl')
  return JSON.parse(line) as Record<string, unknown>
}

const UNVERIFIED = { issuer: 'https://idp.example/', kid: 'a-key', clientId: 'an-agent' }

describe.each([
  ['extauth proxy', proxy, '/r/some/where?secret=1'],
  ['extauth registry', registry, '/registry/default/v0.1/servers?search=secret'],
] as const)('%s: the line of a refused request', (_name, start, path) => {
  it('says whose address it came from, with what program, and what its token says of itself', async () => {
    const line = await lineOf(await start(), path, BEARER, 'GET')
    expect(line).toMatchObject({ status: 401, client: '192.0.2.7', unverified: UNVERIFIED })
    expect(line['userAgent']).toBe(`curl/8.0 ${'x'.repeat(300)}`.slice(0, 256))
    expect(line).not.toHaveProperty('path')
  }, 30_000)

  it('leaves the address out with --no-log-clients', async () => {
    const line = await lineOf(await start('--no-log-clients'), path, BEARER, 'GET')
    expect(line).toMatchObject({ status: 401, unverified: UNVERIFIED })
    expect(line).not.toHaveProperty('client')
  }, 30_000)

  it('has nothing to say of a token that is none', async () => {
    const line = await lineOf(await start(), path, { authorization: 'Bearer opaque' }, 'GET')
    expect(line).toMatchObject({ status: 401, client: '192.0.2.7' })
    expect(line).not.toHaveProperty('unverified')
  }, 30_000)
})

describe('extauth proxy: other lines', () => {
  it('a 404 has its path, without the query; what reached a route has none of it', async () => {
    const running = await proxy()
    expect(await lineOf(running, '/nowhere/at/all?secret=1')).toMatchObject({ status: 404, path: '/nowhere/at/all' })
    const line = await lineOf(running, '/open/x', BEARER)
    expect(line).toMatchObject({ status: 502, route: 'open' })
    for (const name of ['client', 'userAgent', 'path', 'unverified']) expect(line).not.toHaveProperty(name)
  }, 30_000)
})
