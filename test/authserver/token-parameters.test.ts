import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createSockets } from '../support/sockets.ts'
import {
  getTokens,
  logIn,
  makePkce,
  postForm,
  REDIRECT,
  redeem,
  refresh,
  register,
  startRig,
  type Pkce,
  type Rig,
  type TestClient,
} from './rig.ts'

const sockets = createSockets()
let rig: Rig
let client: TestClient
let confidential: TestClient

beforeAll(async () => {
  rig = await startRig(sockets, {
    resources: (url) => [
      { url: `${url}/mcp`, scopes: ['mcp:read', 'mcp:write'], providers: [] },
      { url: `${url}/other`, scopes: ['other'], providers: [] },
    ],
  })
  client = await register(rig)
  confidential = await register(rig, { token_endpoint_auth_method: 'client_secret_basic' })
})
beforeEach(() => rig.clock.advance(60_000))
afterAll(() => sockets.closeAll())

const post = (form: Readonly<Record<string, string>> | string, headers: Readonly<Record<string, string>> = {}) => {
  const body = typeof form === 'string' ? form : new URLSearchParams(form).toString()
  const type = { 'content-type': 'application/x-www-form-urlencoded' }
  return fetch(`${rig.issuer}/oauth/token`, { method: 'POST', headers: { ...type, ...headers }, body })
}

const basic = (id: string, secret: string) => `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`

async function code(who: TestClient = client): Promise<{ code: string; pkce: Pkce }> {
  const { answer, pkce } = await logIn(rig, who)
  return { code: answer.get('code') ?? '', pkce }
}

describe('a token request', () => {
  const cases: [string, () => Readonly<Record<string, string>> | string, number, string][] = [
    ['without anything', () => ({}), 400, 'invalid_request'],
    ['without grant_type', () => ({ client_id: client.id }), 400, 'invalid_request'],
    ['with an empty grant_type', () => ({ client_id: client.id, grant_type: '' }), 400, 'invalid_request'],
    ['with an unknown grant', () => ({ client_id: client.id, grant_type: 'magic' }), 400, 'unsupported_grant_type'],
    [
      'with client_credentials',
      () => ({ client_id: client.id, grant_type: 'client_credentials' }),
      400,
      'unsupported_grant_type',
    ],
    [
      'with password',
      () => ({ client_id: client.id, grant_type: 'password', username: 'a', password: 'b' }),
      400,
      'unsupported_grant_type',
    ],
    ['with implicit', () => ({ client_id: client.id, grant_type: 'implicit' }), 400, 'unsupported_grant_type'],
    [
      'with a device code',
      () => ({ client_id: client.id, grant_type: 'urn:ietf:params:oauth:grant-type:device_code' }),
      400,
      'unsupported_grant_type',
    ],
    [
      'with token exchange',
      () => ({ client_id: client.id, grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange' }),
      400,
      'unsupported_grant_type',
    ],
    ['without client_id', () => ({ grant_type: 'authorization_code', code: 'x' }), 400, 'invalid_request'],
    [
      'of an unknown client',
      () => ({ client_id: 'AAAAAAAAAAAAAAAAAAAAAA', grant_type: 'authorization_code' }),
      401,
      'invalid_client',
    ],
    [
      'of a client id at a private address',
      () => ({ client_id: 'https://10.0.0.1/m', grant_type: 'authorization_code' }),
      401,
      'invalid_client',
    ],
    [
      'with client_id twice',
      () => `client_id=${client.id}&client_id=${client.id}&grant_type=refresh_token`,
      400,
      'invalid_request',
    ],
    [
      'with grant_type twice',
      () => `client_id=${client.id}&grant_type=refresh_token&grant_type=refresh_token`,
      400,
      'invalid_request',
    ],
    [
      'of a confidential client without its secret',
      () => ({ client_id: confidential.id, grant_type: 'refresh_token' }),
      401,
      'invalid_client',
    ],
    [
      'of a confidential client with another secret',
      () => ({ client_id: confidential.id, client_secret: 'x', grant_type: 'refresh_token' }),
      401,
      'invalid_client',
    ],
    [
      'of a public client with a secret',
      () => ({ client_id: client.id, client_secret: 'x', grant_type: 'refresh_token' }),
      401,
      'invalid_client',
    ],
    [
      'with an assertion that is none',
      () => ({ client_id: client.id, client_assertion: 'x', grant_type: 'refresh_token' }),
      400,
      'invalid_request',
    ],
    [
      'for a code without code',
      () => ({ client_id: client.id, grant_type: 'authorization_code', code_verifier: 'x'.repeat(43) }),
      400,
      'invalid_request',
    ],
    [
      'for a code without verifier',
      () => ({ client_id: client.id, grant_type: 'authorization_code', code: 'x' }),
      400,
      'invalid_request',
    ],
    [
      'for a code that is none',
      () => ({ client_id: client.id, grant_type: 'authorization_code', code: 'x', code_verifier: 'x'.repeat(43) }),
      400,
      'invalid_grant',
    ],
    [
      'for a very long code',
      () => ({
        client_id: client.id,
        grant_type: 'authorization_code',
        code: 'x'.repeat(9000),
        code_verifier: 'x'.repeat(43),
      }),
      400,
      'invalid_grant',
    ],
    [
      'for a code twice',
      () => `client_id=${client.id}&grant_type=authorization_code&code=a&code=b&code_verifier=${'x'.repeat(43)}`,
      400,
      'invalid_request',
    ],
    [
      'for a refresh token without one',
      () => ({ client_id: client.id, grant_type: 'refresh_token' }),
      400,
      'invalid_request',
    ],
    [
      'for a refresh token that is none',
      () => ({ client_id: client.id, grant_type: 'refresh_token', refresh_token: 'x' }),
      400,
      'invalid_grant',
    ],
    [
      'for a refresh token of the right length',
      () => ({ client_id: client.id, grant_type: 'refresh_token', refresh_token: 'x'.repeat(108) }),
      400,
      'invalid_grant',
    ],
    [
      'for a refresh token twice',
      () => `client_id=${client.id}&grant_type=refresh_token&refresh_token=a&refresh_token=b`,
      400,
      'invalid_request',
    ],
  ]
  it.each(cases)('%s', async (_name, form, status, error) => {
    const response = await post(form())
    expect([response.status, await response.json()]).toMatchObject([status, { error }])
    expect(response.headers.get('cache-control')).toBe('no-store')
    expect(response.headers.get('content-type')).toBe('application/json')
  })

  const authorizations: [string, () => string, number, string][] = [
    ['of another scheme', () => 'Bearer x', 400, 'invalid_request'],
    ['that is no base64', () => 'Basic %%%', 400, 'invalid_request'],
    ['without a colon', () => `Basic ${Buffer.from('x').toString('base64')}`, 400, 'invalid_request'],
    ['without a secret', () => basic(confidential.id, ''), 400, 'invalid_request'],
    ['with a wrong secret', () => basic(confidential.id, 'x'), 401, 'invalid_client'],
    ['of an unknown client', () => basic('AAAAAAAAAAAAAAAAAAAAAA', 'x'), 401, 'invalid_client'],
  ]
  it.each(authorizations)('with an Authorization header %s', async (_name, authorization, status, error) => {
    const response = await post({ grant_type: 'refresh_token', refresh_token: 'x' }, { authorization: authorization() })
    expect([response.status, await response.json()]).toMatchObject([status, { error }])
    expect(response.headers.has('www-authenticate')).toBe(status === 401)
  })

  it('with a secret in header and body', async () => {
    const form = { grant_type: 'refresh_token', client_id: confidential.id, client_secret: confidential.secret ?? '' }
    const response = await post(form, { authorization: basic(confidential.id, confidential.secret ?? '') })
    expect([response.status, await response.json()]).toMatchObject([400, { error: 'invalid_request' }])
  })

  it('as JSON, or by GET', async () => {
    const json = await fetch(`${rig.issuer}/oauth/token`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{}',
    })
    expect([json.status, await json.json()]).toMatchObject([400, { error: 'invalid_request' }])
    expect((await fetch(`${rig.issuer}/oauth/token`)).status).toBe(405)
  })

  it('that is too large', async () => {
    expect((await post({ grant_type: 'x'.repeat(57 * 1024) })).status).toBe(413)
  })
})

describe('a code', () => {
  const refused: [string, (pkce: Pkce) => Record<string, string>, string][] = [
    ['with another verifier', () => ({ code_verifier: makePkce().verifier }), 'invalid_grant'],
    ['with the challenge as verifier', (pkce) => ({ code_verifier: pkce.challenge }), 'invalid_grant'],
    ['with a verifier that is too short', () => ({ code_verifier: 'x'.repeat(42) }), 'invalid_request'],
    ['with a verifier that is too long', () => ({ code_verifier: 'x'.repeat(129) }), 'invalid_request'],
    ['with a verifier of other characters', () => ({ code_verifier: 'ä'.repeat(43) }), 'invalid_request'],
    ['with another redirect_uri', () => ({ redirect_uri: 'https://evil.example/' }), 'invalid_grant'],
    ['with another port of the redirect_uri', () => ({ redirect_uri: 'http://127.0.0.1:1/callback' }), 'invalid_grant'],
    ['without redirect_uri', () => ({ redirect_uri: '' }), 'invalid_request'],
    ['for another resource', () => ({ resource: `${rig.url}/other` }), 'invalid_target'],
    ['for an unknown resource', () => ({ resource: 'https://x.example' }), 'invalid_target'],
  ]
  it.each(refused)('%s is refused and stays good', async (_name, change, error) => {
    const { code: value, pkce } = await code()
    const response = await redeem(rig, client, value, pkce, change(pkce))
    expect([response.status, await response.json()]).toMatchObject([400, { error }])
    expect((await redeem(rig, client, value, pkce)).status).toBe(200)
  })

  it('of another client is refused', async () => {
    const { code: value, pkce } = await code()
    const other = await register(rig)
    expect(await (await redeem(rig, other, value, pkce)).json()).toMatchObject({ error: 'invalid_grant' })
  })

  it('may name its resource again, with a trailing slash, twice', async () => {
    const { code: value, pkce } = await code()
    const form = new URLSearchParams({ grant_type: 'authorization_code', client_id: client.id, code: value })
    form.set('code_verifier', pkce.verifier)
    form.set('redirect_uri', REDIRECT)
    form.append('resource', `${rig.url}/mcp`)
    form.append('resource', `${rig.url}/mcp/`)
    expect((await post(form.toString())).status).toBe(200)
  })

  it('ends after its time', async () => {
    const { code: value, pkce } = await code()
    rig.clock.advance(600_001)
    expect(await (await redeem(rig, client, value, pkce)).json()).toMatchObject({ error: 'invalid_grant' })
  })

  it.each(['client_secret_basic', 'client_secret_post'])('is redeemed with a secret (%s)', async (method) => {
    const who = await register(rig, { token_endpoint_auth_method: method })
    const { code: value, pkce } = await code(who)
    const form = { grant_type: 'authorization_code', code: value, code_verifier: pkce.verifier, redirect_uri: REDIRECT }
    const secret = who.secret ?? ''
    const response =
      method === 'client_secret_basic'
        ? await post(form, { authorization: basic(who.id, secret) })
        : await post({ ...form, client_id: who.id, client_secret: secret })
    expect(response.status).toBe(200)
  })

  it('gives no refresh token to a client that did not register the grant', async () => {
    const who = await register(rig, { grant_types: ['authorization_code'] })
    const tokens = await getTokens(rig, who)
    expect(tokens.refresh_token).toBeUndefined()
    const response = await refresh(rig, who, 'x')
    expect([response.status, await response.json()]).toMatchObject([400, { error: 'unauthorized_client' }])
  })
})

describe('a refresh', () => {
  it('may narrow the scope, and has all of it again afterwards', async () => {
    const first = await getTokens(rig, client, { more: { scope: 'mcp:read mcp:write' } })
    const narrow = (await (
      await refresh(rig, client, first.refresh_token ?? '', { scope: 'mcp:write' })
    ).json()) as Record<string, string>
    expect(narrow['scope']).toBe('mcp:write')
    const wide = (await (await refresh(rig, client, narrow['refresh_token'] ?? '')).json()) as Record<string, string>
    expect(wide['scope']).toBe('mcp:read mcp:write')
  })

  const refused: [string, () => Record<string, string>, string][] = [
    ['for more scope', () => ({ scope: 'mcp:read mcp:write' }), 'invalid_scope'],
    ['for another resource', () => ({ resource: `${rig.url}/other` }), 'invalid_target'],
  ]
  it.each(refused)('%s is refused and spends nothing', async (_name, change, error) => {
    const { refresh_token: token = '' } = await getTokens(rig, client)
    expect(await (await refresh(rig, client, token, change())).json()).toMatchObject({ error })
    expect((await refresh(rig, client, token)).status).toBe(200)
  })
})

describe('how often one address asks for tokens', () => {
  it('is a hundred times at once', async () => {
    const own = await startRig(sockets)
    const form = { grant_type: 'refresh_token', client_id: 'AAAAAAAAAAAAAAAAAAAAAA', refresh_token: 'x' }
    const answers = await Promise.all(Array.from({ length: 103 }, () => postForm(`${own.issuer}/oauth/token`, form)))
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(3)
  })
})
