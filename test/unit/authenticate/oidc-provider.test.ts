import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { exportJWK, generateKeyPair, type JWK } from 'jose'
import { Provider } from 'oidc-provider'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Authenticator } from '../../../src/authenticate/index.ts'
import { createSockets } from '../../support/sockets.ts'
import { networked } from '../../support/authenticate/network.ts'
import { callerOf, refusalOf } from '../../support/authenticate/world.ts'

const RESOURCE = 'https://registry.example.com'
const ALGORITHMS = ['RS256', 'PS256', 'ES256', 'EdDSA'] as const
const SECRET = 's3cret: with/odd+signs'

const sockets = createSockets()
let directory: string
let issuer: string
let provider: Provider
let settings: { alg: (typeof ALGORITHMS)[number]; format: 'jwt' | 'opaque' }
const requests: string[] = []

const newKeys = async (kidPrefix: string): Promise<JWK[]> =>
  Promise.all(
    ALGORITHMS.map(async (alg) => {
      const { privateKey } = await generateKeyPair(alg, { extractable: true })
      return { ...(await exportJWK(privateKey)), alg, use: 'sig', kid: `${kidPrefix}-${alg}` }
    }),
  )

/** An independent identity provider; another call with other keys is a rotation. */
const createProvider = (keys: readonly JWK[]) =>
  new Provider(issuer, {
    jwks: { keys: [...keys] },
    clients: [
      {
        client_id: 'registry:app',
        client_secret: SECRET,
        grant_types: ['client_credentials'],
        response_types: [],
        redirect_uris: [],
        scope: 'mcp-registry:read',
      },
    ],
    scopes: ['mcp-registry:read'],
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      introspection: { enabled: true, allowedPolicy: () => true },
      revocation: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: () => ({
          scope: 'mcp-registry:read',
          audience: RESOURCE,
          accessTokenTTL: 600,
          accessTokenFormat: settings.format,
          jwt: { sign: { alg: settings.alg } },
        }),
      },
    },
    ttl: { ClientCredentials: 600 },
  })

const basic = `Basic ${Buffer.from(`registry%3Aapp:${encodeURIComponent(SECRET)}`).toString('base64')}`
const post = (path: string, form: Record<string, string>) =>
  fetch(`${issuer}${path}`, { method: 'POST', headers: { authorization: basic }, body: new URLSearchParams(form) })

const issue = async (): Promise<string> => {
  const form = { grant_type: 'client_credentials', resource: RESOURCE, scope: 'mcp-registry:read' }
  const answer = (await (await post('/token', form)).json()) as { access_token?: string }
  if (answer.access_token === undefined) throw new Error(`no token: ${JSON.stringify(answer)}`)
  return answer.access_token
}

const asked = (path: string) => requests.filter((url) => url === path).length

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'extauth-'))
  settings = { alg: 'RS256', format: 'jwt' }
  requests.length = 0
  issuer = await sockets.http((request, response) => {
    requests.push(request.url ?? '')
    void provider.callback()(request, response)
  })
  provider = createProvider(await newKeys('first'))
})
afterEach(async () => {
  await sockets.closeAll()
  rmSync(directory, { recursive: true, force: true })
})

const open = (more: object = {}): Authenticator =>
  sockets.closing(networked([{ name: 'oidc-provider', issuerUrl: issuer, audience: RESOURCE, ...more }]))

const introspecting = () => {
  writeFileSync(join(directory, 'secret'), `${SECRET}\n`)
  return open({
    introspectionUrl: `${issuer}/token/introspection`,
    clientId: 'registry:app',
    clientSecretFile: join(directory, 'secret'),
  })
}

describe('JWTs of oidc-provider', () => {
  it.each(ALGORITHMS)('signed with %s are accepted by discovery', async (alg) => {
    settings.alg = alg
    const caller = await callerOf(open(), await issue())
    expect(caller).toMatchObject({ issuer, subject: 'registry:app', format: 'jwt' })
    expect(caller.claims).toMatchObject({ aud: RESOURCE, scope: 'mcp-registry:read', client_id: 'registry:app' })
  })

  it('are accepted after a rotation, by one more look at the keys', async () => {
    const authenticator = open()
    await callerOf(authenticator, await issue())
    const before = await issue()
    provider = createProvider(await newKeys('second'))
    for (let count = 0; count < 5; count++) await callerOf(authenticator, await issue())
    expect(asked('/jwks')).toBe(2)
    expect(asked('/.well-known/openid-configuration')).toBe(1)
    expect((await refusalOf(authenticator, before)).code).toBe('invalid_token')
  })

  it('cost two questions, however many they are', async () => {
    const authenticator = open()
    await authenticator.start()
    const tokens = await Promise.all(Array.from({ length: 20 }, issue))
    for (let round = 0; round < 10; round++) for (const token of tokens) await callerOf(authenticator, token)
    expect(asked('/jwks') + asked('/.well-known/openid-configuration')).toBe(2)
  })

  it('for another audience are refused', async () => {
    expect((await refusalOf(open({ audience: 'https://other.example.com' }), await issue())).code).toBe('invalid_token')
  })
})

describe('opaque tokens of oidc-provider', () => {
  beforeEach(() => {
    settings.format = 'opaque'
  })

  it('are accepted by introspection with HTTP Basic', async () => {
    const caller = await callerOf(introspecting(), await issue())
    expect(caller).toMatchObject({ issuer, format: 'opaque' })
    expect(caller.claims).toMatchObject({ aud: RESOURCE, client_id: 'registry:app', scope: 'mcp-registry:read' })
    expect(caller.expiresAtMs).toBeGreaterThan(Date.now() + 500_000)
  })

  it('are asked about once', async () => {
    const authenticator = introspecting()
    const token = await issue()
    await Promise.all(Array.from({ length: 20 }, () => callerOf(authenticator, token)))
    await callerOf(authenticator, token)
    expect(asked('/token/introspection')).toBe(1)
  })

  it('that were made up or revoked are refused', async () => {
    const authenticator = introspecting()
    expect((await refusalOf(authenticator, 'invalid')).code).toBe('invalid_token')
    const token = await issue()
    expect((await post('/token/revocation', { token })).status).toBe(200)
    expect((await refusalOf(authenticator, token)).code).toBe('invalid_token')
  })

  it('is 500 with a wrong client secret, without a verdict about the token', async () => {
    writeFileSync(join(directory, 'wrong'), 'wrong')
    const authenticator = open({
      introspectionUrl: `${issuer}/token/introspection`,
      clientId: 'registry:app',
      clientSecretFile: join(directory, 'wrong'),
    })
    expect((await refusalOf(authenticator, await issue())).code).toBe('config_error')
  })
})
