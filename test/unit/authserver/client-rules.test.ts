import { afterEach, describe, expect, it } from 'vitest'
import {
  atUpstream,
  authorizeUrl,
  getTokens,
  LIMITS,
  makePkce,
  postForm,
  postJson,
  redeem,
  refresh,
  register,
  type Rig,
  startRig,
} from '../../support/authserver/rig.ts'
import { Browser } from '../../support/authserver/browser.ts'
import { createSockets } from '../../support/sockets.ts'
import { TLS } from '../../support/tls.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const REMOTE = 'https://client.example.com/callback'
const open = (spec: Readonly<Record<string, unknown>>) => startRig(sockets, { spec: { limits: LIMITS, ...spec } })
const ask = async (rig: Rig, metadata: object) => {
  const response = await postJson(`${rig.issuer}/oauth/register`, { redirect_uris: [REMOTE], ...metadata })
  return { status: response.status, body: (await response.json()) as Record<string, unknown> }
}
const metadataOf = async (rig: Rig) => {
  const response = await fetch(`${rig.url}/.well-known/oauth-authorization-server`)
  return (await response.json()) as Record<string, unknown>
}

describe('baselineClientScopes', () => {
  it('are registered beside what the client names, and only there', async () => {
    const rig = await open({ baselineClientScopes: ['mcp:write', 'openid'] })
    const { body } = await ask(rig, { scope: 'mcp:read' })
    expect(body['scope']).toBe('mcp:read mcp:write')
    // A client without a list has no restriction.
    expect((await ask(rig, {})).body).not.toHaveProperty('scope')
    expect(rig.server.warnings.join()).toContain('which no client gets: openid')
  })
})

describe('allowConfidentialClientRegistration: false', () => {
  it.each(['client_secret_basic', 'client_secret_post', 'private_key_jwt'])('refuses %s', async (method) => {
    const rig = await open({ allowConfidentialClientRegistration: false })
    const { status, body } = await ask(rig, {
      token_endpoint_auth_method: method,
      ...(method === 'private_key_jwt' ? { jwks_uri: 'https://client.example.com/keys' } : {}),
    })
    expect([status, body['error']]).toEqual([400, 'invalid_client_metadata'])
    expect((await ask(rig, { token_endpoint_auth_method: 'none' })).status).toBe(201)
  })

  it('is what the metadata say', async () => {
    const methods = async (spec: Readonly<Record<string, unknown>>) =>
      (await metadataOf(await open(spec)))['token_endpoint_auth_methods_supported']
    const off = { allowConfidentialClientRegistration: false }
    expect(await methods({ ...off, cimd: { enabled: false } })).toEqual(['none'])
    expect(await methods(off)).toEqual(['none', 'private_key_jwt'])
    const clients = [{ clientId: 'job', clientSecretRef: { name: 'as', key: 'hmac' } }]
    expect(await methods({ ...off, clients })).toContain('client_secret_basic')
  })

  it('takes nothing from a client that has its secret already', async () => {
    const rig = await open({})
    const client = await register(rig, { token_endpoint_auth_method: 'client_secret_post' })
    const form = { client_secret: client.secret ?? '' }
    rig.open({ spec: { ...rig.spec, allowConfidentialClientRegistration: false } })
    const [browser, pkce] = [new Browser(), makePkce()]
    const asked = await browser.get(authorizeUrl(rig, client, pkce))
    const back = await atUpstream(rig, browser, await browser.press(asked, 'continue'))
    const code = new URL(back.location ?? '').searchParams.get('code') ?? ''
    expect((await redeem(rig, client, code, pkce, form)).status).toBe(200)
  })
})

describe('forceConfidentialRedirectUris', () => {
  const spec = { forceConfidentialRedirectUris: [REMOTE] }

  it.each([{}, { token_endpoint_auth_method: 'none' }])('gives a secret to who asks for none: %j', async (more) => {
    const { status, body } = await ask(await open(spec), more)
    expect(status).toBe(201)
    expect(body).toMatchObject({
      token_endpoint_auth_method: 'client_secret_post',
      client_secret: expect.stringMatching(/^[A-Za-z0-9_-]{43}$/),
    })
  })

  it('is compared exactly, and does not apply to a client that requests a method', async () => {
    const rig = await open(spec)
    const none = await ask(rig, { redirect_uris: [`${REMOTE}/`] })
    expect(none.body).not.toHaveProperty('client_secret')
    const basic = await ask(rig, { token_endpoint_auth_method: 'client_secret_basic' })
    expect(basic.body['token_endpoint_auth_method']).toBe('client_secret_basic')
  })

  it('gives no secret to a client that is on a device as well', async () => {
    const rig = await open(spec)
    for (const other of ['http://127.0.0.1/cb', 'https://localhost/cb', 'com.example.app:/cb']) {
      const { status, body } = await ask(rig, { redirect_uris: [REMOTE, other] })
      expect([status, body['error']]).toEqual([400, 'invalid_redirect_uri'])
    }
  })

  it('has to be shown with the secret, which does in the header as well', async () => {
    const rig = await open(spec)
    const { body } = await ask(rig, {})
    const [id, secret] = [String(body['client_id']), String(body['client_secret'])]
    const form = { grant_type: 'authorization_code', code: 'x', code_verifier: 'y'.repeat(43) }
    const errorOf = async (response: Response) => ((await response.json()) as { error: string }).error
    const token = `${rig.issuer}/oauth/token`
    expect(await errorOf(await postForm(token, { ...form, client_id: id }))).toBe('invalid_client')
    expect(await errorOf(await postForm(token, { ...form, client_id: id, client_secret: secret }))).toBe(
      'invalid_grant',
    )
    const authorization = `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`
    expect(await errorOf(await postForm(token, form, { authorization }))).toBe('invalid_grant')
  })
})

/** A server that fetches documents from a host of this test. */
async function withDocuments(cimd: object, headers: Readonly<Record<string, string>> = {}) {
  let asked = 0
  const host = (
    await sockets.https(TLS.server, (request, response) => {
      asked += 1
      const id = `${host}${request.url ?? ''}`
      response.writeHead(200, { 'content-type': 'application/json', ...headers })
      response.end(JSON.stringify({ client_id: id, redirect_uris: ['https://client.example.com/cb'] }))
    })
  ).replace('127.0.0.1', 'localhost')
  const clientMetadata = { allowPrivateIP: true, caBundleRef: { name: 'idp', key: 'ca' } }
  const rig = await open({ cimd, clientMetadata })
  const login = async (path: string) => {
    const client = { id: `${host}${path}`, secret: undefined }
    const more = { redirect_uri: 'https://client.example.com/cb' }
    return (await new Browser().get(authorizeUrl(rig, client, makePkce(), more))).status
  }
  return { rig, login, asked: () => asked }
}

describe('cimd', () => {
  it('that is off knows no client by its document, fetches none, and says so', async () => {
    const { rig, login, asked } = await withDocuments({ enabled: false })
    expect(await login('/client')).toBe(400)
    expect(asked()).toBe(0)
    expect((await metadataOf(rig))['client_id_metadata_document_supported']).toBe(false)
    const tokens = await getTokens(rig, await register(rig))
    expect(tokens.access_token).toBeTruthy()
  })

  it('is on where it is not off', async () => {
    const { rig, login } = await withDocuments({})
    expect(await login('/client')).toBe(200)
    expect((await metadataOf(rig))['client_id_metadata_document_supported']).toBe(true)
  })

  it('keeps as many documents as it says', async () => {
    const { login, asked } = await withDocuments({ cacheMaxSize: 1 })
    for (const path of ['/a', '/a', '/b', '/a']) expect(await login(path)).toBe(200)
    expect(asked()).toBe(3)
  })

  it.each<Record<string, string>>([
    { 'cache-control': 'no-cache, max-age=86400' },
    { 'cache-control': 'no-store', expires: 'Fri, 01 Jan 2100 00:00:00 GMT' },
    { 'cache-control': 'max-age=86400', age: '86390' },
    { expires: '0' },
  ])('keeps what is old already for five minutes: %j', async (headers) => {
    const { rig, login, asked } = await withDocuments({ cacheFallbackTtl: '20m' }, headers)
    await login('/a')
    rig.clock.advance(4 * 60_000)
    await login('/a')
    expect(asked()).toBe(1)
    rig.clock.advance(2 * 60_000)
    await login('/a')
    expect(asked()).toBe(2)
  })

  it.each<[string, Record<string, string>, number]>([
    ['what says nothing as long as it says', {}, 2],
    ['what says how long as long as that', { 'cache-control': 'max-age=3600' }, 1],
  ])('keeps %s', async (_name, headers, times) => {
    const { rig, login, asked } = await withDocuments({ cacheFallbackTtl: '20m' }, headers)
    await login('/a')
    rig.clock.advance(19 * 60_000)
    await login('/a')
    expect(asked()).toBe(1)
    rig.clock.advance(2 * 60_000)
    await login('/a')
    expect(asked()).toBe(times)
  })
})

it('a refresh token of a client without a secret goes on as before', async () => {
  const rig = await open({ allowConfidentialClientRegistration: false, cimd: { enabled: false } })
  const client = await register(rig)
  const { refresh_token: token = '' } = await getTokens(rig, client)
  expect((await refresh(rig, client, token)).status).toBe(200)
})

it('people log in at an issuer with plain http that is not on this machine', async () => {
  const rig = await startRig(sockets, { allowedHosts: ['0.0.0.0'], spec: { limits: LIMITS } })
  // Every address of this machine, and none that is taken for it.
  const issuer = rig.issuer.replace('127.0.0.1', '0.0.0.0')
  const resources = [{ url: `${issuer}/mcp`, scopes: [], providers: [] }]
  const spec = { ...rig.spec, issuer, insecureAllowHTTP: true, allowConfidentialClientRegistration: false }
  const there = { ...rig, issuer, resources, server: rig.open({ spec, resources }) }
  expect((await getTokens(there, await register(there))).access_token).toBeTruthy()
})
