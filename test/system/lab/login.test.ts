import { createHash } from 'node:crypto'
import { decodeJwt } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { LabIdentityProvider } from '../../../lab/index.ts'
import { movableClock, postForm, postJson, startProvider } from '../../support/lab/standins.ts'

const REDIRECT = 'http://127.0.0.1:1234/callback'
const VERIFIER = 'a-verifier-that-is-long-enough-for-the-rules-of-pkce'
const CHALLENGE = createHash('sha256').update(VERIFIER).digest('base64url')
const clock = movableClock()

let identity: LabIdentityProvider
let clientId: string

beforeAll(async () => {
  identity = await startProvider(clock)
  const registration = { redirect_uris: [REDIRECT], token_endpoint_auth_method: 'none' }
  const { status, json } = await postJson(`${identity.url}/register`, registration)
  expect([status, 'client_secret' in json]).toEqual([201, false])
  clientId = String(json['client_id'])
})
afterAll(() => identity.close())

const authorize = (changes: Record<string, string> = {}) => {
  const query = new URLSearchParams({
    response_type: 'code',
    client_id: clientId,
    redirect_uri: REDIRECT,
    code_challenge: CHALLENGE,
    code_challenge_method: 'S256',
    state: 'st',
    resource: 'http://127.0.0.1:8080/x',
    ...changes,
  })
  return fetch(`${identity.url}/authorize?${query.toString()}`, { redirect: 'manual' })
}

const loginOf = async (response: Response) => /name="login" value="([^"]+)"/.exec(await response.text())?.[1] ?? ''

async function codeFor(user: string, changes: Record<string, string> = {}): Promise<string> {
  const login = await loginOf(await authorize(changes))
  const { status, headers } = await postForm(`${identity.url}/login`, { login, user })
  const location = new URL(headers.get('location') ?? 'none:')
  expect([status, location.searchParams.get('state'), location.searchParams.get('iss')]).toEqual([
    303,
    'st',
    identity.url,
  ])
  return location.searchParams.get('code') ?? ''
}

const redeem = (code: string, changes: Record<string, string> = {}) =>
  postForm(`${identity.url}/token`, {
    grant_type: 'authorization_code',
    client_id: clientId,
    redirect_uri: REDIRECT,
    code_verifier: VERIFIER,
    code,
    ...changes,
  })

describe('the login without a password', () => {
  test('shows who can be picked and gives a token for the lab and the resource', async () => {
    const page = await (await authorize()).text()
    expect(page).toContain('value="alice"')
    expect(page).toContain('demo service')
    const { status, json } = await redeem(await codeFor('alice', { scope: 'openid mcp:tools', nonce: 'n' }))
    expect(status).toBe(200)
    expect(decodeJwt(String(json['access_token']))).toMatchObject({
      sub: 'alice',
      groups: ['admins', 'dev'],
      aud: ['extauth-lab', 'http://127.0.0.1:8080/x'],
      scope: 'openid mcp:tools',
    })
    expect(decodeJwt(String(json['id_token']))).toMatchObject({ sub: 'alice', aud: clientId, nonce: 'n' })
  })

  test('with offline_access comes a refresh token, good once, for new tokens', async () => {
    const first = (await redeem(await codeFor('alice', { scope: 'openid offline_access' }))).json
    const renew = () =>
      postForm(`${identity.url}/token`, {
        grant_type: 'refresh_token',
        client_id: clientId,
        refresh_token: String(first['refresh_token']),
      })
    const second = (await renew()).json
    expect(decodeJwt(String(second['access_token']))).toMatchObject({ sub: 'alice' })
    expect(decodeJwt(String(second['id_token']))).toMatchObject({ sub: 'alice', aud: clientId })
    expect(second['refresh_token']).not.toBe(first['refresh_token'])
    expect((await renew()).json['error']).toBe('invalid_grant')
  })

  test('userinfo returns only the user of an access token', async () => {
    const { json } = await redeem(await codeFor('bob'))
    const userInfo = (token: unknown) =>
      fetch(`${identity.url}/userinfo`, { headers: { authorization: `Bearer ${String(token)}` } })
    expect(await (await userInfo(json['access_token'])).json()).toEqual({
      sub: 'bob',
      groups: ['dev'],
      email: 'bob@example.com',
    })
    expect((await userInfo('wrong')).status).toBe(401)
  })

  test('a code is good once', async () => {
    const code = await codeFor('bob')
    expect((await redeem(code)).status).toBe(200)
    expect((await redeem(code)).json['error']).toBe('invalid_grant')
  })

  test('a code is valid for a minute', async () => {
    const code = await codeFor('bob')
    clock.advance(60_000)
    expect((await redeem(code)).json['error']).toBe('invalid_grant')
  })

  test('an unregistered redirect differing only in its loopback port is taken (RFC 8252)', async () => {
    const redirect = REDIRECT.replace('1234', '4321')
    const code = await codeFor('bob', { redirect_uri: redirect })
    expect((await redeem(code, { redirect_uri: redirect })).status).toBe(200)
  })

  test.each([
    ['a wrong verifier', { code_verifier: 'wrong' }, 'invalid_grant'],
    ['another redirect', { redirect_uri: 'http://127.0.0.1:1234/other' }, 'invalid_grant'],
    ['an unknown client', { client_id: 'unknown' }, 'invalid_client'],
  ])('a code with %s is refused', async (_name, changes, error) => {
    expect((await redeem(await codeFor('bob'), changes)).json['error']).toBe(error)
  })

  test("another client's code is refused", async () => {
    const registration = { redirect_uris: [REDIRECT], token_endpoint_auth_method: 'none' }
    const other = await postJson(`${identity.url}/register`, registration)
    const answer = await redeem(await codeFor('bob'), { client_id: String(other.json['client_id']) })
    expect(answer.json['error']).toBe('invalid_grant')
  })
})

describe('a wrong authorization request', () => {
  test.each([
    ['an unknown client', { client_id: 'unknown' }],
    ['a redirect that is not registered', { redirect_uri: 'https://evil.example/' }],
  ])('%s is answered here and sent nowhere', async (_name, changes) => {
    const response = await authorize(changes)
    expect([response.status, response.headers.get('location')]).toEqual([400, null])
  })

  test.each([
    ['no PKCE', { code_challenge: '' }, 'invalid_request'],
    ['plain PKCE', { code_challenge_method: 'plain' }, 'invalid_request'],
    ['the implicit flow', { response_type: 'token' }, 'unsupported_response_type'],
    ['a resource that is no URL', { resource: 'x' }, 'invalid_target'],
  ])('%s is sent back as an error', async (_name, changes, error) => {
    const location = new URL((await authorize(changes)).headers.get('location') ?? 'none:')
    expect([location.origin + location.pathname, location.searchParams.get('error')]).toEqual([REDIRECT, error])
  })

  test('an unknown user cannot be picked', async () => {
    const login = await loginOf(await authorize())
    const { status, json } = await postForm(`${identity.url}/login`, { login, user: 'eve' })
    expect([status, json['error']]).toEqual([400, 'invalid_request'])
  })
})

describe('registration', () => {
  test.each([
    [{}, 'invalid_redirect_uri'],
    [{ redirect_uris: [] }, 'invalid_redirect_uri'],
    [{ redirect_uris: ['http://example.com/'] }, 'invalid_redirect_uri'],
    [{ redirect_uris: ['javascript:alert(1)'] }, 'invalid_redirect_uri'],
    [{ redirect_uris: ['https://example.com/#x'] }, 'invalid_redirect_uri'],
    [{ redirect_uris: [REDIRECT], token_endpoint_auth_method: 'tls_client_auth' }, 'invalid_client_metadata'],
  ])('refuses %j', async (metadata, error) => {
    const { status, json } = await postJson(`${identity.url}/register`, metadata)
    expect([status, json['error']]).toEqual([400, error])
  })

  test('gives a confidential client its secret', async () => {
    const { json } = await postJson(`${identity.url}/register`, { redirect_uris: ['https://example.com/cb'] })
    expect(String(json['client_secret']).length).toBeGreaterThan(40)
    expect(json['token_endpoint_auth_method']).toBe('client_secret_basic')
  })
})
