import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createSockets } from '../../support/sockets.ts'
import {
  basic,
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
} from '../../support/authserver/rig.ts'

const sockets = createSockets()
let rig: Rig
let client: TestClient

beforeAll(async () => {
  rig = await startRig(sockets, {
    resources: (url) => [
      { url: `${url}/mcp`, scopes: ['mcp:read', 'mcp:write'], providers: [] },
      { url: `${url}/other`, scopes: ['other'], providers: [] },
    ],
  })
  client = await register(rig)
})
beforeEach(() => rig.clock.advance(60_000))
afterAll(() => sockets.closeAll())

const post = (form: Readonly<Record<string, string>> | string, headers: Readonly<Record<string, string>> = {}) =>
  postForm(`${rig.issuer}/oauth/token`, form, headers)

async function code(who: TestClient = client): Promise<{ code: string; pkce: Pkce }> {
  const { answer, pkce } = await logIn(rig, who)
  return { code: answer.get('code') ?? '', pkce }
}

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

  it.each([
    { scope: 'offline_access' },
    { scope: 'mcp:read mcp:write other offline_access' },
    { application_type: 'web' },
    { client_name: '☃', response_types: ['code', 'code id_token'], client_uri: 'https://x.example', contacts: ['x'] },
  ])('that registered with %j gets its tokens, renews and revokes them', async (metadata) => {
    const who = await register(rig, metadata)
    const { refresh_token: token = '' } = await getTokens(rig, who)
    const renewed = await refresh(rig, who, token)
    expect(renewed.status).toBe(200)
    const { refresh_token: next = '' } = (await renewed.json()) as { refresh_token?: string }
    expect((await postForm(`${rig.issuer}/oauth/revoke`, { client_id: who.id, token: next })).status).toBe(200)
    expect((await refresh(rig, who, next)).status).toBe(400)
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
