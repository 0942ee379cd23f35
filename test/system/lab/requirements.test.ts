import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Secret } from '../../../src/core/index.ts'
import { type LabBackend, type LabIdentityProvider, startLabBackend } from '../../../lab/index.ts'
import { movableClock, startProvider } from '../../support/lab/standins.ts'

const clock = movableClock()
let identity: LabIdentityProvider
let backend: LabBackend

beforeAll(async () => {
  identity = await startProvider(clock)
  const { url: issuer, jwks: keys, isRevoked } = identity
  backend = await startLabBackend({
    port: 0,
    clock,
    mounts: {
      '/header': { kind: 'header', name: 'X-Api-Key', value: new Secret('key') },
      '/bearer': { kind: 'bearer', token: new Secret('token') },
      '/jwt': { kind: 'jwt', issuer, audience: 'backend', keys, isRevoked },
      '/jwt-header': { kind: 'jwt', issuer, audience: 'backend', header: 'x-token', keys, isRevoked },
      '/sigv4': { kind: 'sigv4', region: 'eu-west-1', service: 'cloud-mcp', lookup: () => undefined },
    },
  })
})
afterAll(async () => {
  await backend.close()
  await identity.close()
})

const ask = (mount: string, headers: [string, string][]) =>
  fetch(`${backend.url}${mount}/mcp`, { method: 'POST', headers, body: '{}' })

/** Verified requests are answered by the MCP server, which rejects an empty object. */
const LET_IN = 415

describe('the header that is wanted', () => {
  test.each([
    ['is there', [['x-api-key', 'key']], LET_IN],
    ['is missing', [], 401],
    ['has another value', [['x-api-key', 'Key']], 403],
    [
      'is there twice',
      [
        ['x-api-key', 'key'],
        ['X-API-KEY', 'key'],
      ],
      403,
    ],
  ] as [string, [string, string][], number][])('%s', async (_name, headers, status) => {
    expect((await ask('/header', headers)).status).toBe(status)
  })
})

describe('the bearer that is wanted', () => {
  test.each([
    ['is there', [['authorization', 'Bearer token']], LET_IN],
    ['is missing', [], 401],
    ['is another', [['authorization', 'Bearer other']], 401],
    ['has another scheme', [['authorization', 'Basic token']], 401],
    ['is in another header', [['x-authorization', 'Bearer token']], 401],
  ] as [string, [string, string][], number][])('%s', async (_name, headers, status) => {
    const response = await ask('/bearer', headers)
    expect(response.status).toBe(status)
    if (status === 401) expect(response.headers.get('www-authenticate')).toMatch(/^Bearer realm=/)
  })
})

describe('the JWT that is wanted', () => {
  const mint = (changes: object = {}) => identity.mint({ sub: 'alice', aud: ['backend'], ...changes })

  test('is accepted and its claims are kept', async () => {
    expect((await ask('/jwt', [['authorization', `Bearer ${await mint()}`]])).status).toBe(LET_IN)
    expect(backend.requests('/jwt').at(-1)?.verified).toMatchObject({ claims: { sub: 'alice', aud: 'backend' } })
  })

  test('is wanted in the header that is configured, without a scheme', async () => {
    const token = await mint()
    expect((await ask('/jwt-header', [['x-token', token]])).status).toBe(LET_IN)
    expect((await ask('/jwt-header', [['authorization', `Bearer ${token}`]])).status).toBe(401)
  })

  test.each([
    ['of another audience', () => mint({ aud: ['other'] })],
    ['that has expired', () => mint({ ttlSeconds: -1 })],
    ['that is opaque', () => mint({ opaque: true })],
    [
      'of another issuer',
      async () => {
        const other = await startProvider(clock)
        const token = await other.mint({ sub: 'alice', aud: ['backend'] })
        await other.close()
        return token
      },
    ],
    ['without a signature', async () => `${(await mint()).split('.').slice(0, 2).join('.')}.`],
  ])('is refused: one %s', async (_name, make) => {
    const response = await ask('/jwt', [['authorization', `Bearer ${await make()}`]])
    expect(response.status).toBe(401)
    expect(backend.requests('/jwt').at(-1)).toMatchObject({ verified: undefined })
  })
})

describe('the signature that is wanted', () => {
  test('is refused in the form of AWS', async () => {
    const response = await ask('/sigv4', [['authorization', 'Bearer token']])
    expect([response.status, response.headers.get('x-amzn-errortype')]).toEqual([400, 'IncompleteSignatureException'])
    expect(await response.json()).toMatchObject({ __type: 'IncompleteSignatureException' })
    expect(response.headers.get('date')).toBe(new Date(clock.now()).toUTCString())
  })
})
