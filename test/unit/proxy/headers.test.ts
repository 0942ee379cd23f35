import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Secret, type Credential } from '../../../src/core/index.ts'
import { createCaller } from '../../support/ports.ts'
import { rawConnect } from '../../support/raw.ts'
import { createSockets } from '../../support/sockets.ts'
import {
  createRoute,
  headerCredential,
  headersIn,
  runtimeOf,
  startProxy,
  startRawBackend,
  type RawBackend,
} from '../../support/proxy/harness.ts'

const TOKEN = 'callers-own-token-0123456789'

const aws = (): Credential => ({
  kind: 'aws',
  accessKeyId: 'AKIDEXAMPLE',
  secretAccessKey: new Secret('s'),
  sessionToken: new Secret('session-of-ours'),
  region: 'eu-west-1',
  service: 'aws-mcp',
  signing: { day: '', key: undefined },
})

/** Type → what its route sets, and the credential that is applied. */
const TYPES = {
  unauthenticated: { owned: [], credential: undefined },
  headerInjection: { owned: ['x-api-key'], credential: () => headerCredential('x-api-key', 'ours') },
  bearerToken: { owned: ['authorization'], credential: () => headerCredential('authorization', 'Bearer ours') },
  tokenExchange: { owned: ['x-exchanged'], credential: () => headerCredential('x-exchanged', 'ours') },
  cloudSts: {
    owned: ['authorization', 'x-amz-date', 'x-amz-security-token', 'x-amz-content-sha256'],
    credential: aws,
  },
} as const

const DROPPED: [string, string][] = [
  ['Authorization', `Bearer ${TOKEN}`],
  ['authorization', 'Basic dTpw'],
  ['Proxy-Authorization', 'Basic dTpw'],
  ['Cookie', 'session=1'],
  ['X-Amz-Date', '20200101T000000Z'],
  ['X-Amz-Security-Token', 'theirs'],
  ['X_Amz_Security_Token', 'theirs'],
  ['x-amz-content-sha256', 'UNSIGNED-PAYLOAD'],
  ['X-Amzn-Oidc-Data', 'theirs'],
  ['X-Amzn-Bedrock-AgentCore-Runtime-User-Id', 'mallory'],
  ['X-Forwarded-Access-Token', 'theirs'],
  ['X-Forwarded-User', 'mallory'],
  ['X-Auth-Request-Email', 'mallory@example.com'],
  ['X-Real-IP', '10.0.0.1'],
  ['Keep-Alive', 'timeout=5'],
  ['TE', 'trailers'],
  ['Trailer', 'X-Sum'],
  ['Proxy-Connection', 'theirs'],
  ['X-Copy', `a ${TOKEN} b`],
]

const FORWARDED: [string, string][] = [
  ['Accept', 'application/json, text/event-stream'],
  ['Content-Type', 'application/json'],
  ['Mcp-Session-Id', 's-1'],
  ['MCP-Protocol-Version', '2026-07-28'],
  ['Mcp-Method', 'tools/call'],
  ['Mcp-Name', 'echo'],
  ['Mcp-Param-Region', 'eu'],
  ['Last-Event-ID', '3'],
  ['traceparent', '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'],
  ['X-Amzn-Trace-Id', 'Root=1-2'],
  ['Via', '1.0 other'],
  ['X-Custom', '\xe9'],
]

const sockets = createSockets()
afterEach(() => sockets.closeAll())

describe.each(Object.entries(TYPES))('headers of a route of type %s', (type, { owned, credential }) => {
  let backend: RawBackend
  let url: string
  beforeEach(async () => {
    backend = await startRawBackend(sockets)
    const route = createRoute(sockets, backend.origin, {
      type,
      ownedHeaders: owned,
      needsBody: type === 'cloudSts',
      caller: () => createCaller({ token: TOKEN }),
      ...(credential === undefined ? {} : { credential }),
    })
    url = (await startProxy(sockets, runtimeOf([route]))).url
  })

  const seen = async (lines: readonly (readonly [string, string])[]): Promise<string[][]> => {
    const host = new URL(url).host
    const text = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')
    const auth = lines.some(([name]) => /^authorization$/i.test(name)) ? '' : `Authorization: Bearer ${TOKEN}\r\n`
    const client = rawConnect(url, `POST / HTTP/1.1\r\nHost: ${host}\r\n${auth}${text}Content-Length: 2\r\n\r\n{}`)
    await client.until(/^HTTP\/1\.1 200 /)
    expect(backend.received).toHaveLength(1)
    expect(backend.received[0]).not.toContain(TOKEN)
    return headersIn(backend.received[0])
  }

  it.each(DROPPED)('a caller-sent %s is dropped', async (name, value) => {
    const headers = await seen([[name, value]])
    const lower = name.toLowerCase()
    expect(headers.filter(([other]) => other === lower && !(owned as readonly string[]).includes(lower))).toEqual([])
    for (const [, got] of headers) expect(got).not.toBe(value)
  })

  it.each(FORWARDED)('%s is forwarded as it is', async (name, value) => {
    expect(await seen([[name, value]])).toContainEqual([name.toLowerCase(), value])
  })

  it('a caller-sent copy of what we set is replaced, in any spelling', async () => {
    const copies = owned.flatMap((name): [string, string][] => [
      [name, 'theirs'],
      [name.toUpperCase(), 'theirs'],
      [name.replaceAll('-', '_'), 'theirs'],
    ])
    const headers = await seen([...copies.filter(([name]) => !/^authorization$/i.test(name)), ['X-Other', 'o']])
    expect(headers.filter(([, value]) => value === 'theirs')).toEqual([])
    for (const name of owned) expect(headers.filter(([other]) => other === name)).toHaveLength(1)
    expect(headers).toContainEqual(['x-other', 'o'])
  })

  it('Host, length and forwarding headers are ours and true', async () => {
    const headers = await seen([
      ['X-Forwarded-For', '6.6.6.6'],
      ['X-Forwarded-Proto', 'https'],
      ['X-Forwarded-Host', 'evil.example'],
      ['X-Forwarded-Port', '1'],
      ['Forwarded', 'for=6.6.6.6'],
    ])
    const { host } = new URL(url)
    const of = (name: string) => headers.filter(([other]) => other === name).map(([, value]) => value)
    expect(of('host')).toEqual([new URL(backend.origin).host])
    expect(of('content-length')).toEqual(['2'])
    expect(of('x-forwarded-for')).toEqual(['127.0.0.1'])
    expect(of('x-forwarded-proto')).toEqual(['http'])
    expect(of('x-forwarded-host')).toEqual([host])
    expect(of('x-forwarded-port')).toEqual([])
    expect(of('forwarded')).toEqual([`for=127.0.0.1;host="${host}";proto=http`])
    expect(of('via')).toEqual(['1.1 extauth'])
  })

  it('what Connection names goes no further, and cannot take away what we set', async () => {
    const headers = await seen([
      ['X-Hop', '1'],
      ['Connection', `X-Hop, ${owned.join(', ')}, x-forwarded-for, host`],
    ])
    expect(headers.map(([name]) => name)).not.toContain('x-hop')
    for (const name of [...owned, 'x-forwarded-for', 'host']) expect(headers.map(([other]) => other)).toContain(name)
  })

  it('sends the credential and nothing else of its kind', async () => {
    const headers = await seen([])
    const authorization = headers.filter(([name]) => name === 'authorization').map(([, value]) => value)
    if (type === 'bearerToken') expect(authorization).toEqual(['Bearer ours'])
    else if (type === 'cloudSts') expect(authorization.join()).toMatch(/^AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE\//)
    else expect(authorization).toEqual([])
    const values = headers.map(([, value]) => value)
    if (type === 'headerInjection' || type === 'tokenExchange') expect(values).toContain('ours')
    if (type === 'cloudSts') expect(headers).toContainEqual(['x-amz-security-token', 'session-of-ours'])
  })
})

describe('tokens in the target', () => {
  it.each([`/?q=${TOKEN}`, `/${TOKEN}`, '/?access_token=x', `/?q=${TOKEN.replaceAll('-', '%2d')}`])(
    '%s gets 400 and goes nowhere',
    async (target) => {
      const backend = await startRawBackend(sockets)
      const proxy = await startProxy(sockets, runtimeOf([createRoute(sockets, backend.origin)]))
      const client = rawConnect(
        proxy.url,
        `GET ${target} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${TOKEN}\r\n\r\n`,
      )
      expect(await client.until(/\r\n\r\n\{.*\}/)).toMatch(/^HTTP\/1\.1 400 /)
      expect(backend.received).toEqual([])
      expect(proxy.log.lines.join('\n') + proxy.metrics.text()).not.toContain(TOKEN)
    },
  )
})
