import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createSockets } from '../../support/sockets.ts'
import { Browser } from '../../support/authserver/browser.ts'
import { JWT_BEARER, startGrants } from '../../support/authserver/grants/rig.ts'
import {
  authorizeUrl,
  makePkce,
  REDIRECT,
  register,
  startRig,
  type Rig,
  type TestClient,
} from '../../support/authserver/rig.ts'

const sockets = createSockets()
let rig: Rig
/** A server with one resource and more grants. */
let grants: Rig
let client: TestClient
let several: TestClient
const pkce = makePkce()

beforeAll(async () => {
  rig = await startRig(sockets, {
    resources: (url) => [
      { url: `${url}/mcp`, scopes: ['mcp:read', 'mcp:write'], providers: [] },
      { url: `${url}/other/`, scopes: ['other'], providers: [] },
    ],
  })
  grants = await startGrants(sockets)
  client = await register(rig)
  several = await register(rig, { redirect_uris: [REDIRECT, 'http://localhost:7777/cb?x=1'] })
})
afterAll(() => sockets.closeAll())

type Change = Readonly<Record<string, string | undefined>>
/** Adds a parameter once more. */
const twice =
  (name: string, value = 'x') =>
  (url: URL) =>
    url.searchParams.append(name, value)

const emptyResource = (url: URL) => url.searchParams.set('resource', '')

const ask = (change: Change, edit?: (url: URL) => void, who: TestClient = client) => {
  const url = new URL(authorizeUrl(rig, who, pkce, { resource: `${rig.url}/mcp`, ...change }))
  edit?.(url)
  // No client reaches the rate limit here.
  rig.clock.advance(1000)
  return new Browser().get(url.href)
}

describe('an authorization request whose error cannot be redirected', () => {
  const cases: [string, Change, string, ((url: URL) => void)?][] = [
    ['without client_id', { client_id: undefined }, 'invalid_request'],
    ['with an empty client_id', { client_id: '' }, 'invalid_request'],
    ['with client_id twice', {}, 'invalid_request', twice('client_id')],
    ['of an unknown client', { client_id: 'AAAAAAAAAAAAAAAAAAAAAA' }, 'invalid_client'],
    ['of a client id that is no name', { client_id: '../../etc/passwd' }, 'invalid_client'],
    ['of a client id with a NUL', { client_id: 'a\0b' }, 'invalid_client'],
    ['of a very long client id', { client_id: 'x'.repeat(5000) }, 'invalid_client'],
    ['of an http client id', { client_id: 'http://client.example/meta' }, 'invalid_client'],
    ['of a client id without path', { client_id: 'https://client.example' }, 'invalid_client'],
    ['of a client id with only a slash', { client_id: 'https://client.example/' }, 'invalid_client'],
    ['of a client id with a fragment', { client_id: 'https://client.example/a#b' }, 'invalid_client'],
    ['of a client id with user information', { client_id: 'https://u@client.example/a' }, 'invalid_client'],
    ['of a client id with dot segments', { client_id: 'https://client.example/a/../b' }, 'invalid_client'],
    ['of a client id with encoded dot segments', { client_id: 'https://client.example/a/%2e%2e/b' }, 'invalid_client'],
    ['of a client id at a private address', { client_id: 'https://10.0.0.1/meta' }, 'invalid_client'],
    ['of a client id at the metadata service', { client_id: 'https://169.254.169.254/latest/meta' }, 'invalid_client'],
    ['of a client id on this machine', { client_id: 'https://127.0.0.1/meta' }, 'invalid_client'],
    ['of a client id at a mapped loopback address', { client_id: 'https://[::ffff:127.0.0.1]/meta' }, 'invalid_client'],
    ['with redirect_uri twice', {}, 'invalid_request', twice('redirect_uri', REDIRECT)],
    ['with another redirect_uri', { redirect_uri: 'https://evil.example/cb' }, 'invalid_redirect_uri'],
    ['with a longer path in redirect_uri', { redirect_uri: `${REDIRECT}/x` }, 'invalid_redirect_uri'],
    ['with a query in redirect_uri', { redirect_uri: `${REDIRECT}?a=b` }, 'invalid_redirect_uri'],
    ['with a fragment in redirect_uri', { redirect_uri: `${REDIRECT}#a` }, 'invalid_redirect_uri'],
    ['with localhost for 127.0.0.1', { redirect_uri: 'http://localhost:7777/callback' }, 'invalid_redirect_uri'],
    ['with https for http', { redirect_uri: 'https://127.0.0.1:7777/callback' }, 'invalid_redirect_uri'],
    ['with an escaped path', { redirect_uri: 'http://127.0.0.1:7777/call%62ack' }, 'invalid_redirect_uri'],
    [
      'with user information in redirect_uri',
      { redirect_uri: 'http://u@127.0.0.1:7777/callback' },
      'invalid_redirect_uri',
    ],
    ['with an impossible port', { redirect_uri: 'http://127.0.0.1:77777/callback' }, 'invalid_redirect_uri'],
    ['with javascript: as redirect_uri', { redirect_uri: 'javascript:alert(1)' }, 'invalid_redirect_uri'],
    ['that is too long', { nonce: 'x'.repeat(9000) }, 'invalid_request'],
  ]
  it.each(cases)('%s: a page, no redirect', async (_name, change, code, edit) => {
    const seen = await ask(change, edit)
    expect(seen.status).toBe(400)
    expect(seen.location).toBeUndefined()
    expect(seen.html).toContain(`<code>${code}: `)
  })

  it('without redirect_uri, of a client with several', async () => {
    const seen = await ask({ redirect_uri: undefined }, undefined, several)
    expect([seen.status, seen.location]).toEqual([400, undefined])
  })
})

describe('an authorization request that is refused to its client', () => {
  const cases: [string, Change, string, ((url: URL) => void)?][] = [
    ['without response_type', { response_type: undefined }, 'invalid_request'],
    ['with an empty response_type', { response_type: '' }, 'invalid_request'],
    ['with response_type twice', {}, 'invalid_request', twice('response_type', 'code')],
    ['with response_type token', { response_type: 'token' }, 'unsupported_response_type'],
    ['with response_type id_token', { response_type: 'id_token' }, 'unsupported_response_type'],
    ['with response_type code token', { response_type: 'code token' }, 'unsupported_response_type'],
    ['with response_type none', { response_type: 'none' }, 'unsupported_response_type'],
    ['with response_type CODE', { response_type: 'CODE' }, 'unsupported_response_type'],
    ['with response_mode fragment', { response_mode: 'fragment' }, 'invalid_request'],
    ['with response_mode form_post', { response_mode: 'form_post' }, 'invalid_request'],
    ['with response_mode query.jwt', { response_mode: 'query.jwt' }, 'invalid_request'],
    ['with response_mode twice', { response_mode: 'query' }, 'invalid_request', twice('response_mode', 'query')],
    ['without code_challenge', { code_challenge: undefined }, 'invalid_request'],
    ['with an empty code_challenge', { code_challenge: '' }, 'invalid_request'],
    ['with code_challenge twice', {}, 'invalid_request', twice('code_challenge', pkce.challenge)],
    ['with a short code_challenge', { code_challenge: pkce.challenge.slice(1) }, 'invalid_request'],
    ['with a long code_challenge', { code_challenge: `${pkce.challenge}A` }, 'invalid_request'],
    ['with padding in code_challenge', { code_challenge: `${pkce.challenge.slice(1)}=` }, 'invalid_request'],
    ['with plain base64 in code_challenge', { code_challenge: `${pkce.challenge.slice(1)}+` }, 'invalid_request'],
    ['without code_challenge_method', { code_challenge_method: undefined }, 'invalid_request'],
    ['with code_challenge_method plain', { code_challenge_method: 'plain' }, 'invalid_request'],
    ['with code_challenge_method s256', { code_challenge_method: 's256' }, 'invalid_request'],
    ['with code_challenge_method S512', { code_challenge_method: 'S512' }, 'invalid_request'],
    ['with code_challenge_method twice', {}, 'invalid_request', twice('code_challenge_method', 'S256')],
    [
      'with neither challenge nor method',
      { code_challenge: undefined, code_challenge_method: undefined },
      'invalid_request',
    ],
    ['without resource, where there are several', { resource: undefined }, 'invalid_target'],
    ['with an unknown resource', { resource: 'https://other.example/mcp' }, 'invalid_target'],
    ['with an empty resource, where there are several', {}, 'invalid_target', emptyResource],
    ['with a resource that is no URL', { resource: 'mcp' }, 'invalid_target'],
    ['with several resources', {}, 'invalid_target', (url) => url.searchParams.append('resource', `${rig.url}/other`)],
    [
      'with a resource in other letters',
      {},
      'invalid_target',
      (url) => url.searchParams.set('resource', `${rig.url}/MCP`),
    ],
    [
      'with a path below the resource',
      {},
      'invalid_target',
      (url) => url.searchParams.set('resource', `${rig.url}/mcp/x`),
    ],
    ['with two trailing slashes', {}, 'invalid_target', (url) => url.searchParams.set('resource', `${rig.url}/mcp//`)],
    [
      'with a fragment in resource',
      {},
      'invalid_target',
      (url) => url.searchParams.set('resource', `${rig.url}/mcp#x`),
    ],
    ['with a query in resource', {}, 'invalid_target', (url) => url.searchParams.set('resource', `${rig.url}/mcp?x`)],
    ['with scope twice', {}, 'invalid_request', twice('scope')],
    ['with a quote in scope', { scope: 'mcp:read "x"' }, 'invalid_scope'],
    ['with a backslash in scope', { scope: 'mcp\\read' }, 'invalid_scope'],
    ['with a control character in scope', { scope: 'mcp:read\tmcp:write' }, 'invalid_scope'],
    ['with a scope that is not ASCII', { scope: 'mcp:réad' }, 'invalid_scope'],
    ['with a very long scope', { scope: 'x'.repeat(2049) }, 'invalid_scope'],
    ['with prompt twice', { prompt: 'login' }, 'invalid_request', twice('prompt', 'consent')],
    ['with prompt none and login', { prompt: 'none login' }, 'invalid_request'],
    ['with prompt none', { prompt: 'none' }, 'consent_required'],
    ['with request', { request: 'eyJ' }, 'request_not_supported'],
    ['with an empty request', { request: '' }, 'request_not_supported'],
    ['with request_uri', { request_uri: 'https://client.example/r' }, 'request_uri_not_supported'],
    ['with registration', { registration: '{}' }, 'registration_not_supported'],
    ['with nonce twice', { nonce: 'a' }, 'invalid_request', twice('nonce')],
  ]
  it.each(cases)('%s', async (_name, change, code, edit) => {
    const seen = await ask(change, edit)
    expect(seen.status).toBe(303)
    const answer = new URL(seen.location ?? '')
    expect(`${answer.origin}${answer.pathname}`).toBe(REDIRECT)
    expect(answer.searchParams.get('error')).toBe(code)
    expect(answer.searchParams.get('error_description')).toMatch(/^[\x20-\x21\x23-\x5b\x5d-\x7e]+$/)
    expect(answer.searchParams.get('iss')).toBe(rig.issuer)
    expect(answer.searchParams.get('state')).toBe('state-of-the-client')
    expect(seen.headers.getSetCookie()).toEqual([])
  })

  it('of a client that registered no grant for codes', async () => {
    const other = await register(grants, {
      grant_types: [JWT_BEARER],
      token_endpoint_auth_method: 'client_secret_basic',
    })
    const seen = await new Browser().get(authorizeUrl(grants, other, pkce))
    expect(new URL(seen.location ?? '').searchParams.get('error')).toBe('unauthorized_client')
  })

  it('with state twice: the error comes without a state', async () => {
    const seen = await ask({}, twice('state'))
    const answer = new URL(seen.location ?? '').searchParams
    expect([answer.get('error'), answer.get('state')]).toEqual(['invalid_request', null])
  })

  it('keeps the query of the redirect URI', async () => {
    const redirect = 'http://localhost:7777/cb?x=1'
    const seen = await ask({ redirect_uri: redirect, prompt: 'none' }, undefined, several)
    expect(seen.location?.startsWith(`${redirect}&error=consent_required&`)).toBe(true)
  })
})

describe('an authorization request that is let through', () => {
  const cases: [string, Change, ((url: URL) => void)?][] = [
    ['as it is', {}],
    ['without state', { state: undefined }],
    ['without scope', { scope: undefined }],
    ['with an unknown scope beside a known one', { scope: 'mcp:read openid profile' }],
    ['with two spaces in scope', { scope: 'mcp:read  mcp:write' }],
    ['with an empty scope before one', { scope: ' offline_access', prompt: 'consent' }],
    ['with nothing but spaces in scope', { scope: '  ' }],
    ['with the same resource twice', {}, (url) => url.searchParams.append('resource', `${rig.url}/mcp`)],
    ['with the same resource in two spellings', {}, (url) => url.searchParams.append('resource', `${rig.url}/mcp/`)],
    ['with offline_access', { scope: 'mcp:read offline_access', prompt: 'consent' }],
    ['without redirect_uri, of a client with one', { redirect_uri: undefined }],
    ['with another port of the loopback redirect', { redirect_uri: 'http://127.0.0.1:54321/callback' }],
    ['without port in the loopback redirect', { redirect_uri: 'http://127.0.0.1/callback' }],
    ['with response_mode query', { response_mode: 'query' }],
    ['with a trailing slash at the resource', {}, (url) => url.searchParams.set('resource', `${rig.url}/mcp/`)],
    ['without the trailing slash of a resource', {}, (url) => url.searchParams.set('resource', `${rig.url}/other`)],
    ['with prompt login', { prompt: 'login' }],
    ['with prompt select_account consent', { prompt: 'select_account consent' }],
    [
      'with parameters of OpenID Connect',
      { nonce: 'n', max_age: '0', ui_locales: 'de', claims: '{}', acr_values: 'x' },
    ],
    ['with an unknown parameter', { unknown: 'x' }, twice('unknown')],
    ['with an empty resource beside one', {}, (url) => url.searchParams.append('resource', '')],
    ['with a state of 2,048 characters', { state: 's'.repeat(2048) }],
  ]
  it.each(cases)('%s: the user is asked', async (_name, change, edit) => {
    const seen = await ask(change, edit)
    expect(seen.status).toBe(200)
    expect(seen.html).toContain('<form method="post"')
  })

  it('is a page for HEAD as well', async () => {
    const response = await fetch(authorizeUrl(rig, client, pkce, { resource: `${rig.url}/mcp` }), { method: 'HEAD' })
    expect([response.status, await response.text()]).toEqual([200, ''])
  })
})

it('a request whose resource is empty is one without resource', async () => {
  const url = new URL(authorizeUrl(grants, await register(grants), pkce))
  emptyResource(url)
  expect((await new Browser().get(url.href)).status).toBe(200)
})

describe('the method of an authorization request', () => {
  it.each(['POST', 'PUT', 'DELETE'])('%s is refused', async (method) => {
    const response = await fetch(authorizeUrl(rig, client, pkce), { method })
    expect([response.status, response.headers.get('allow')]).toEqual([405, 'GET, HEAD, OPTIONS'])
  })
})
