import { generateKeyPair, exportJWK } from 'jose'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createSockets } from '../../support/sockets.ts'
import { postJson, startRig, type Rig } from '../../support/authserver/rig.ts'

const sockets = createSockets()
let rig: Rig
beforeAll(async () => {
  rig = await startRig(sockets)
})
afterAll(() => sockets.closeAll())

const ask = (body: unknown) => {
  rig.clock.advance(1000)
  return postJson(`${rig.issuer}/oauth/register`, body)
}
const jwk = {
  kty: 'EC',
  crv: 'P-256',
  x: 'f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU',
  y: 'x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0',
}
const uris = { redirect_uris: ['https://app.example.com/cb'] }

describe('a registration', () => {
  it('says what was registered, with native and none as defaults, and gives no access token for itself', async () => {
    const response = await ask({
      ...uris,
      client_name: 'App',
      scope: 'mcp:read openid admin mcp:read',
      grant_types: ['authorization_code', 'refresh_token', 'urn:ietf:params:oauth:grant-type:device_code'],
      response_types: ['code', 'token'],
      logo_uri: 'https://app.example.com/logo.png',
      software_id: 'x',
    })
    expect([response.status, response.headers.get('cache-control')]).toEqual([201, 'no-store'])
    expect(await response.json()).toEqual({
      client_id: expect.stringMatching(/^[A-Za-z0-9_-]{22}$/),
      client_id_issued_at: Math.floor(rig.clock.now() / 1000),
      client_name: 'App',
      redirect_uris: ['https://app.example.com/cb'],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
      application_type: 'native',
      scope: 'mcp:read',
    })
  })

  it.each(['client_secret_basic', 'client_secret_post'])(
    'with %s gets a secret of which only a hash is kept',
    async (method) => {
      const answer = (await (await ask({ ...uris, token_endpoint_auth_method: method })).json()) as Record<
        string,
        unknown
      >
      expect(answer).toMatchObject({
        client_secret: expect.stringMatching(/^[A-Za-z0-9_-]{43}$/),
        client_secret_expires_at: 0,
      })
      const stored = await rig.store.get(`client:${String(answer['client_id'])}`)
      expect(stored?.value.toString()).not.toContain(answer['client_secret'])
    },
  )

  it('keeps the keys of a client that signs assertions', async () => {
    const response = await ask({ ...uris, token_endpoint_auth_method: 'private_key_jwt', jwks: { keys: [jwk] } })
    expect(await response.json()).toMatchObject({
      jwks: { keys: [jwk] },
      token_endpoint_auth_method: 'private_key_jwt',
    })
  })

  it('is not a preflight, and pages of other origins may read its answer', async () => {
    const response = await fetch(`${rig.issuer}/oauth/register`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', origin: 'https://app.example.com' },
      body: JSON.stringify(uris),
    })
    expect([response.status, response.headers.get('access-control-allow-origin')]).toEqual([201, '*'])
  })

  const accepted: [string, object][] = [
    ['https', uris],
    ['https with a port, path and query', { redirect_uris: ['https://app.example.com:8443/a/b?c=d'] }],
    ['https without a path', { redirect_uris: ['https://app.example.com'] }],
    ['http on localhost', { redirect_uris: ['http://localhost:3000/cb'] }],
    ['http on 127.0.0.1 without a port', { redirect_uris: ['http://127.0.0.1/cb'] }],
    ['http on [::1]', { redirect_uris: ['http://[::1]:3000/cb'] }],
    ['a private-use scheme with a dot', { redirect_uris: ['com.example.app:/cb'] }],
    ['a private-use scheme with an authority', { redirect_uris: ['com.example.app://cb/x'] }],
    ['cursor:', { redirect_uris: ['cursor://anysphere.cursor-retrieval/oauth/user-x/callback'] }],
    ['vscode:', { redirect_uris: ['vscode://vscode.github-authentication/did-authenticate'] }],
    ['vscode-insiders:', { redirect_uris: ['vscode-insiders://x/y'] }],
    ['windsurf:', { redirect_uris: ['windsurf://x'] }],
    ['claude:', { redirect_uris: ['claude://x'] }],
    ['ten redirect URIs', { redirect_uris: Array.from({ length: 10 }, (_, i) => `https://app.example.com/${i}`) }],
    ['one redirect URI twice', { redirect_uris: ['https://a.example/', 'https://a.example/'] }],
    ['a name of 256 characters', { ...uris, client_name: 'n'.repeat(256) }],
    ['a name of markup', { ...uris, client_name: '<script>alert(1)</script>' }],
    ['null for what is optional', { ...uris, client_name: null, scope: null, jwks: null, grant_types: null }],
    ['application_type web', { ...uris, application_type: 'web' }],
    ['an empty scope', { ...uris, scope: '' }],
    ['unknown members', { ...uris, something: { else: true } }],
  ]
  it.each(accepted)('accepts %s', async (_name, metadata) => {
    expect((await ask(metadata)).status).toBe(201)
  })

  const badUris: [string, unknown][] = [
    ['none', undefined],
    ['null', null],
    ['a string', 'https://app.example.com/cb'],
    ['an empty list', []],
    ['eleven', Array.from({ length: 11 }, (_, i) => `https://app.example.com/${i}`)],
    ['a number', [1]],
    ['a nested list', [['https://app.example.com/cb']]],
    ['an empty text', ['']],
    ['a relative URL', ['/cb']],
    ['a host without scheme', ['app.example.com/cb']],
    ['a fragment', ['https://app.example.com/cb#x']],
    ['an empty fragment', ['https://app.example.com/cb#']],
    ['user information', ['https://user@app.example.com/cb']],
    ['a password', ['https://u:p@app.example.com/cb']],
    ['user information that looks like a host', ['https://app.example.com@evil.example/cb']],
    ['http on another host', ['http://app.example.com/cb']],
    ['http on a name that begins with localhost', ['http://localhost.evil.example/cb']],
    ['http on a private address', ['http://192.168.0.1/cb']],
    ['http on 0.0.0.0', ['http://0.0.0.0:3000/cb']],
    ['http on loopback in another notation', ['http://2130706433/cb']],
    ['http on loopback with user information', ['http://u@127.0.0.1/cb']],
    ['javascript:', ['javascript:alert(1)']],
    ['JavaScript: in other letters', ['JaVaScRiPt:alert(1)']],
    ['javascript: behind a tab', ['java\tscript:alert(1)']],
    ['data:', ['data:text/html,x']],
    ['file:', ['file:///etc/passwd']],
    ['vbscript:', ['vbscript:x']],
    ['blob:', ['blob:https://a.example/x']],
    ['about:', ['about:blank']],
    ['ftp:', ['ftp://a.example/x']],
    ['ws:', ['wss://a.example/x']],
    ['mailto:', ['mailto:a@example.com']],
    ['an unknown scheme without a dot', ['myapp://cb']],
    ['a private-use scheme with user information', ['com.example.app://u@host/cb']],
    ['a wildcard host', ['https://*.example.com/cb']],
    ['a backslash', ['https://app.example.com\\@evil.example/cb']],
    ['a space', ['https://app.example.com/a b']],
    ['a line break', ['https://app.example.com/a\r\nSet-Cookie: a=b']],
    ['a NUL', ['https://app.example.com/\0']],
    ['letters beyond ASCII', ['https://exämple.com/cb']],
    ['2,049 characters', [`https://app.example.com/${'x'.repeat(2025)}`]],
    ['an empty host', ['https:///cb']],
    ['one good and one bad', ['https://app.example.com/cb', 'data:x']],
  ]
  it.each(badUris)('refuses redirect_uris with %s', async (_name, redirect_uris) => {
    const response = await ask({ client_name: 'App', redirect_uris })
    expect([response.status, await response.json()]).toMatchObject([400, { error: 'invalid_redirect_uri' }])
  })

  const bad: [string, object][] = [
    ['a name that is too long', { client_name: 'n'.repeat(257) }],
    ['a name with a control character', { client_name: 'a\nb' }],
    ['a name that is no text', { client_name: 1 }],
    ['an unknown auth method', { token_endpoint_auth_method: 'client_secret_jwt' }],
    ['a certificate as auth method', { token_endpoint_auth_method: 'tls_client_auth' }],
    ['an auth method that is no text', { token_endpoint_auth_method: ['none'] }],
    ['private_key_jwt without keys', { token_endpoint_auth_method: 'private_key_jwt' }],
    [
      'private_key_jwt with keys twice',
      { token_endpoint_auth_method: 'private_key_jwt', jwks: { keys: [jwk] }, jwks_uri: 'https://a.example/jwks' },
    ],
    ['an http jwks_uri', { token_endpoint_auth_method: 'private_key_jwt', jwks_uri: 'http://a.example/jwks' }],
    [
      'a jwks_uri with user information',
      { token_endpoint_auth_method: 'private_key_jwt', jwks_uri: 'https://u:p@a.example/jwks' },
    ],
    ['keys that are none', { token_endpoint_auth_method: 'private_key_jwt', jwks: { keys: 'x' } }],
    ['no keys in the set', { token_endpoint_auth_method: 'private_key_jwt', jwks: { keys: [] } }],
    ['a private key', { token_endpoint_auth_method: 'private_key_jwt', jwks: { keys: [{ ...jwk, d: 'x' }] } }],
    ['a symmetric key', { token_endpoint_auth_method: 'private_key_jwt', jwks: { keys: [{ kty: 'oct', k: 'x' }] } }],
    [
      '21 keys',
      { token_endpoint_auth_method: 'private_key_jwt', jwks: { keys: Array.from({ length: 21 }, () => jwk) } },
    ],
    [
      'an HMAC for assertions',
      {
        token_endpoint_auth_method: 'private_key_jwt',
        jwks: { keys: [jwk] },
        token_endpoint_auth_signing_alg: 'HS256',
      },
    ],
    [
      'no signature for assertions',
      { token_endpoint_auth_method: 'private_key_jwt', jwks: { keys: [jwk] }, token_endpoint_auth_signing_alg: 'none' },
    ],
    ['only the implicit grant', { grant_types: ['implicit'] }],
    ['only client credentials', { grant_types: ['client_credentials'] }],
    ['only the refresh grant', { grant_types: ['refresh_token'] }],
    ['no grant at all', { grant_types: [] }],
    ['a grant that is no list', { grant_types: 'authorization_code' }],
    ['a grant that is no text', { grant_types: [1] }],
    ['only response type token', { response_types: ['token'] }],
    ['no response type', { response_types: [] }],
    ['a scope that is no text', { scope: ['mcp:read'] }],
    ['an unknown application type', { application_type: 'service' }],
    ['sector_identifier_uri', { sector_identifier_uri: 'https://10.0.0.1/x' }],
    ['request_uris', { request_uris: ['https://10.0.0.1/x'] }],
  ]
  it.each(bad)('refuses %s', async (_name, metadata) => {
    const response = await ask({ ...uris, ...metadata })
    expect([response.status, await response.json()]).toMatchObject([400, { error: 'invalid_client_metadata' }])
  })

  const bodies: [string, string, string][] = [
    ['no JSON', 'redirect_uris=x', 'invalid_client_metadata'],
    ['an empty body', '', 'invalid_client_metadata'],
    ['a list', '[]', 'invalid_client_metadata'],
    ['a text', '"x"', 'invalid_client_metadata'],
    ['null', 'null', 'invalid_client_metadata'],
    [
      'a name twice',
      '{"redirect_uris":["https://a.example/"],"redirect_uris":["https://b.example/"]}',
      'invalid_client_metadata',
    ],
    ['deep nesting', '{"a":'.repeat(40) + '1' + '}'.repeat(40), 'invalid_client_metadata'],
  ]
  it.each(bodies)('refuses a body of %s', async (_name, body, error) => {
    const response = await ask(body)
    expect([response.status, await response.json()]).toMatchObject([400, { error }])
  })

  it('refuses a body of another type, and one of more than 64 KiB', async () => {
    const form = await fetch(`${rig.issuer}/oauth/register`, { method: 'POST', body: new URLSearchParams({ a: 'b' }) })
    expect([form.status, await form.json()]).toMatchObject([400, { error: 'invalid_request' }])
    const large = await ask({ ...uris, extra: 'x'.repeat(65 * 1024) })
    expect([large.status, await large.json()]).toMatchObject([413, { error: 'invalid_request' }])
  })

  it('takes real keys of the usual kinds', async () => {
    for (const alg of ['RS256', 'ES384', 'EdDSA']) {
      const key = await exportJWK((await generateKeyPair(alg, { extractable: true })).publicKey)
      const response = await ask({ ...uris, token_endpoint_auth_method: 'private_key_jwt', jwks: { keys: [key] } })
      expect(response.status).toBe(201)
    }
  })
})
