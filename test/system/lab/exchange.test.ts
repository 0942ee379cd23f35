import { decodeJwt, jwtVerify, createLocalJWKSet } from 'jose'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { LabIdentityProvider } from '../../../lab/index.ts'
import { basic, movableClock, postForm, startProvider } from '../../support/lab/standins.ts'

const GRANT = 'urn:ietf:params:oauth:grant-type:token-exchange'
const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token'
const AUTHORIZATION = basic('exchanger', 'exchange+secret:1')
const clock = movableClock()

let identity: LabIdentityProvider
let subject: string

beforeAll(async () => {
  identity = await startProvider(clock)
  subject = await identity.mint({ sub: 'alice', groups: ['dev'], ttlSeconds: 600 })
})
afterAll(() => identity.close())
afterEach(() => identity.faults.set({ exchange: 'none', clientCredentials: 'none' }))

const form = (changes: Record<string, string | undefined> = {}) => {
  const all = {
    grant_type: GRANT,
    subject_token: subject,
    subject_token_type: ACCESS_TOKEN,
    audience: 'backend',
    ...changes,
  }
  return Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== undefined)
}
const exchange = (
  changes: Record<string, string | undefined> = {},
  authorization: string | undefined = AUTHORIZATION,
) => postForm(`${identity.url}/token`, form(changes), authorization)

describe('a right exchange', () => {
  test("gives a JWT for the backend's audience, about the subject, with act naming the client", async () => {
    const { status, headers, json } = await exchange({ scope: 'mcp:tools' })
    expect(status).toBe(200)
    expect(headers.get('cache-control')).toBe('no-store')
    expect(json).toMatchObject({
      issued_token_type: ACCESS_TOKEN,
      token_type: 'Bearer',
      expires_in: 300,
      scope: 'mcp:tools',
    })
    const { payload, protectedHeader } = await jwtVerify(
      String(json['access_token']),
      createLocalJWKSet(identity.jwks()),
      {
        issuer: identity.url,
        audience: 'backend',
        currentDate: new Date(clock.now()),
      },
    )
    expect(protectedHeader).toMatchObject({ alg: 'RS256', typ: 'at+jwt' })
    expect(payload).toMatchObject({ sub: 'alice', groups: ['dev'], act: { sub: 'exchanger' }, client_id: 'exchanger' })
  })

  test('lives no longer than its subject token', async () => {
    const short = await identity.mint({ sub: 'alice', ttlSeconds: 42 })
    expect((await exchange({ subject_token: short })).json).toMatchObject({ expires_in: 42 })
  })

  test('takes an opaque subject token of the same issuer', async () => {
    const opaque = await identity.mint({ sub: 'bob', opaque: true })
    const { json } = await exchange({ subject_token: opaque })
    expect(decodeJwt(String(json['access_token']))).toMatchObject({ sub: 'bob' })
  })

  test('names the actor of an actor token', async () => {
    const actor = await identity.mint({ sub: 'robot' })
    const { json } = await exchange({ actor_token: actor, actor_token_type: ACCESS_TOKEN })
    expect(decodeJwt(String(json['access_token']))).toMatchObject({ sub: 'alice', act: { sub: 'robot' } })
  })

  test('takes the secret in the body, and a resource for an audience', async () => {
    const changes = {
      client_id: 'exchanger',
      client_secret: 'exchange+secret:1',
      audience: undefined,
      resource: 'https://backend.example',
    }
    const { status, json } = await postForm(`${identity.url}/token`, form(changes))
    expect([status, decodeJwt(String(json['access_token'])).aud]).toEqual([200, 'https://backend.example'])
  })
})

describe('a wrong exchange is refused', () => {
  test.each([
    ['no subject token', { subject_token: undefined }, 400, 'invalid_request'],
    ['no subject token type', { subject_token_type: undefined }, 400, 'invalid_request'],
    ['a type that is no URN', { subject_token_type: 'access_token' }, 400, 'invalid_request'],
    ['no audience', { audience: undefined }, 400, 'invalid_request'],
    ['an audience that the client may not ask for', { audience: 'other' }, 400, 'invalid_target'],
    ['a resource that the client may not ask for', { resource: 'https://other.example' }, 400, 'invalid_target'],
    [
      'a refresh token wanted',
      { requested_token_type: 'urn:ietf:params:oauth:token-type:refresh_token' },
      400,
      'invalid_request',
    ],
    ['an actor token without its type', { actor_token: 'x' }, 400, 'invalid_request'],
    ['a subject token that is none', { subject_token: 'abc' }, 400, 'invalid_request'],
    ['an unknown grant', { grant_type: 'password' }, 400, 'unsupported_grant_type'],
    ['two ways of client authentication', { client_secret: 'exchange+secret:1' }, 400, 'invalid_request'],
    ['another client_id in the body', { client_id: 'service' }, 400, 'invalid_request'],
  ])('%s', async (_name, changes, status, error) => {
    const answer = await exchange(changes)
    expect([answer.status, answer.json['error']]).toEqual([status, error])
  })

  test('a repeated parameter', async () => {
    const { status, json } = await postForm(
      `${identity.url}/token`,
      [...form(), ['audience', 'backend']],
      AUTHORIZATION,
    )
    expect([status, json['error']]).toEqual([400, 'invalid_request'])
  })

  test('a body that is JSON', async () => {
    const response = await fetch(`${identity.url}/token`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: AUTHORIZATION },
      body: JSON.stringify(Object.fromEntries(form())),
    })
    expect([response.status, await response.json()]).toMatchObject([400, { error: 'invalid_request' }])
  })

  test.each([
    ['no client', undefined],
    ['an unknown client', basic('unknown', 'exchange+secret:1')],
    ['a wrong secret', basic('exchanger', 'wrong')],
    ['a secret that is not form-encoded', `Basic ${Buffer.from('exchanger:exchange+secret:1').toString('base64')}`],
    ['Basic that is none', 'Basic ???'],
    ['a bearer', 'Bearer exchanger'],
  ])('client authentication: %s', async (_name, authorization) => {
    const { status, headers, json } = await postForm(`${identity.url}/token`, form(), authorization)
    expect([status, json['error'], headers.get('www-authenticate')]).toEqual([
      401,
      'invalid_client',
      'Basic realm="extauth-lab"',
    ])
  })

  test('a client without the right to exchange', async () => {
    const answer = await exchange({}, basic('introspector', 'introspect'))
    expect([answer.status, answer.json['error']]).toEqual([400, 'unauthorized_client'])
  })

  test('a subject that is denied', async () => {
    const answer = await exchange({ subject_token: await identity.mint({ sub: 'mallory' }) })
    expect([answer.status, answer.json['error']]).toEqual([403, 'access_denied'])
  })

  test.each([
    ['expired', () => identity.mint({ sub: 'alice', ttlSeconds: -1 })],
    [
      'of another issuer',
      async () => {
        const other = await startProvider(clock)
        const token = await other.mint({ sub: 'alice' })
        await other.close()
        return token
      },
    ],
    ['changed', async () => `${(await identity.mint({ sub: 'alice' })).slice(0, -4)}AAAA`],
  ])('a subject token that is %s', async (_name, make) => {
    const answer = await exchange({ subject_token: await make() })
    expect([answer.status, answer.json['error']]).toEqual([400, 'invalid_request'])
  })
})

describe('the switch /lab/faults', () => {
  test('throttles with Retry-After', async () => {
    identity.faults.set({ exchange: 'throttled', retryAfterSeconds: 7 })
    const answer = await exchange()
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([429, '7'])
  })

  test('breaks: 500 and a page', async () => {
    identity.faults.set({ exchange: 'broken' })
    const answer = await exchange()
    expect([answer.status, answer.json]).toEqual([500, { text: '<h1>It broke.</h1>' }])
  })

  test('throttles client credentials alone', async () => {
    identity.faults.set({ clientCredentials: 'throttled', retryAfterSeconds: 7 })
    const own = () =>
      postForm(`${identity.url}/token`, { grant_type: 'client_credentials' }, basic('service', 'service'))
    const answer = await own()
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([429, '7'])
    expect((await exchange()).status).toBe(200)
    identity.faults.set({ clientCredentials: 'none' })
    expect((await own()).status).toBe(200)
  })

  test('answers late', async () => {
    identity.faults.set({ exchange: 'slow', slowMs: 150 })
    const startMs = performance.now()
    expect((await exchange()).status).toBe(200)
    expect(performance.now() - startMs).toBeGreaterThan(140)
  })

  test('takes back what was exchanged, and what is exchanged after it is good', async () => {
    const jtiOf = async () => decodeJwt(String((await exchange()).json['access_token'])).jti ?? ''
    const before = await jtiOf()
    expect(identity.isRevoked(before)).toBe(false)
    identity.faults.set({ exchange: 'revoking' })
    expect(identity.isRevoked(before)).toBe(true)
    expect(identity.isRevoked(await jtiOf())).toBe(false)
  })
})
