import { createLocalJWKSet, decodeProtectedHeader, jwtVerify } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type LabIdentityProvider, PortInUse, startLabIdentityProvider } from '../../../lab/index.ts'
import { basic, CLIENTS, movableClock, postForm, postJson, startProvider } from '../../support/lab/standins.ts'

const clock = movableClock()
let identity: LabIdentityProvider

beforeAll(async () => {
  identity = await startProvider(clock)
})
afterAll(() => identity.close())

const getJson = async (path: string) =>
  (await (await fetch(`${identity.url}${path}`)).json()) as Record<string, unknown>

describe('discovery and keys', () => {
  test('both documents name the exact issuer', async () => {
    const openid = await getJson('/.well-known/openid-configuration')
    expect(openid).toEqual(await getJson('/.well-known/oauth-authorization-server'))
    expect(openid).toMatchObject({
      issuer: identity.url,
      jwks_uri: `${identity.url}/jwks`,
      code_challenge_methods_supported: ['S256'],
    })
    expect(identity.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/)
  })

  test('the key set has an RSA and an EC key and no private part', async () => {
    const { keys } = (await getJson('/jwks')) as { keys: Record<string, unknown>[] }
    expect(keys.map(({ alg }) => alg)).toEqual(['RS256', 'ES256'])
    expect(keys.some((key) => 'd' in key)).toBe(false)
  })

  test.each([
    ['application/jwk-set+json', 200],
    ['application/json, application/jwk-set+json', 200],
    ['*/*', 200],
    ['application/json', 406],
  ])('keys are served to who takes %s: %i', async (accept, status) => {
    const response = await fetch(`${identity.url}/jwks`, { headers: { accept } })
    expect(response.status).toBe(status)
    if (status === 200) expect(response.headers.get('content-type')).toContain('application/jwk-set+json')
  })

  test('after a rotation new tokens have a new key, and old ones verify until the old keys are forgotten', async () => {
    const provider = await startProvider(clock)
    const verify = (token: string) =>
      jwtVerify(token, createLocalJWKSet(provider.jwks()), { currentDate: new Date(clock.now()) })
    const before = await provider.mint({ sub: 'alice' })
    expect((await postJson(`${provider.url}/lab/rotate`, {})).json['keys']).toHaveLength(4)
    const after = await provider.mint({ sub: 'alice' })
    expect(decodeProtectedHeader(after).kid).not.toBe(decodeProtectedHeader(before).kid)
    await expect(verify(before)).resolves.toBeDefined()
    await provider.rotate({ forget: true })
    await expect(verify(after)).rejects.toMatchObject({ code: 'ERR_JWKS_NO_MATCHING_KEY' })
    await provider.close()
  })

  test('a busy port is named', async () => {
    const port = Number(new URL(identity.url).port)
    await expect(startLabIdentityProvider({ port, clients: CLIENTS, clock })).rejects.toEqual(new PortInUse(port))
  })
})

describe('/lab/token', () => {
  test('mints the token that was asked for', async () => {
    const asked = {
      sub: 'alice',
      groups: ['admins'],
      ttlSeconds: 60,
      aud: ['a', 'b'],
      claims: { dept: 'x' },
      alg: 'ES256',
    }
    const { json } = await postJson(`${identity.url}/lab/token`, asked)
    const { payload, protectedHeader } = await jwtVerify(
      String(json['access_token']),
      createLocalJWKSet(identity.jwks()),
      {
        currentDate: new Date(clock.now()),
      },
    )
    expect(protectedHeader.alg).toBe('ES256')
    expect(payload).toMatchObject({ iss: identity.url, sub: 'alice', groups: ['admins'], aud: ['a', 'b'], dept: 'x' })
    expect((payload.exp ?? 0) * 1000 - clock.now()).toBe(60_000)
  })

  test.each([
    [{}],
    [{ sub: '' }],
    [{ sub: 'a', ttlSeconds: 1e9 }],
    [{ sub: 'a', alg: 'none' }],
    [{ sub: 'a', other: 1 }],
  ])('refuses %j', async (body) => {
    expect((await postJson(`${identity.url}/lab/token`, body)).status).toBe(400)
  })

  test('refuses pages of other origins', async () => {
    const { status } = await postJson(`${identity.url}/lab/token`, { sub: 'a' }, { origin: 'https://evil.example' })
    expect(status).toBe(403)
  })
})

describe('introspection', () => {
  const introspect = (token: string, authorization?: string) =>
    postForm(`${identity.url}/introspect`, { token }, authorization)
  const good = basic('introspector', 'introspect')

  test.each([
    ['opaque', true],
    ['JWT', false],
  ])('knows its %s tokens with all their claims', async (_format, opaque) => {
    const token = await identity.mint({ sub: 'alice', groups: ['dev'], opaque, claims: { dept: 'x' } })
    const { json } = await introspect(token, good)
    expect(json).toMatchObject({
      active: true,
      sub: 'alice',
      groups: ['dev'],
      dept: 'x',
      iss: identity.url,
      aud: 'extauth-lab',
    })
  })

  test('says no more than inactive of expired, revoked and foreign tokens', async () => {
    const expired = await identity.mint({ sub: 'alice', opaque: true, ttlSeconds: 0 })
    const revoked = await identity.mint({ sub: 'alice', opaque: true })
    expect((await postJson(`${identity.url}/lab/revoke`, { token: revoked })).json).toEqual({ revoked: true })
    for (const token of [expired, revoked, 'foreign']) {
      expect((await introspect(token, good)).json).toEqual({ active: false })
    }
  })

  test('an opaque token ends when its time is up', async () => {
    const token = await identity.mint({ sub: 'alice', opaque: true, ttlSeconds: 30 })
    expect((await introspect(token, good)).json['active']).toBe(true)
    clock.advance(30_000)
    expect((await introspect(token, good)).json['active']).toBe(false)
  })

  test.each([
    ['nobody', undefined, 401],
    ['a wrong secret', basic('introspector', 'wrong'), 401],
    ['a client without the right', basic('service', 'service'), 403],
  ])('is refused to %s', async (_name, authorization, status) => {
    expect((await introspect('x', authorization)).status).toBe(status)
  })
})

describe('client credentials', () => {
  const grant = { grant_type: 'client_credentials' }

  test('gives a client a token about itself', async () => {
    const { status, json } = await postForm(`${identity.url}/token`, grant, basic('service', 'service'))
    expect([status, json['token_type']]).toEqual([200, 'Bearer'])
    const { payload } = await jwtVerify(String(json['access_token']), createLocalJWKSet(identity.jwks()), {
      currentDate: new Date(clock.now()),
    })
    expect(payload).toMatchObject({ sub: 'service', client_id: 'service', aud: 'extauth-lab' })
  })

  test.each([
    ['a client without the right', grant, basic('exchanger', 'exchange+secret:1'), 'unauthorized_client'],
    [
      'an audience that is not its own',
      { ...grant, audience: 'backend' },
      basic('service', 'service'),
      'invalid_target',
    ],
  ])('refuses %s', async (_name, form, authorization, error) => {
    expect((await postForm(`${identity.url}/token`, form, authorization)).json['error']).toBe(error)
  })
})
