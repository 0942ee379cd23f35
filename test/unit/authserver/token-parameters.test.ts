import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createSockets } from '../../support/sockets.ts'
import { basic, postForm, register, startRig, type Rig, type TestClient } from '../../support/authserver/rig.ts'

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

const post = (form: Readonly<Record<string, string>> | string, headers: Readonly<Record<string, string>> = {}) =>
  postForm(`${rig.issuer}/oauth/token`, form, headers)

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
    ['of another scheme', () => 'Bearer x', 401, 'invalid_client'],
    ['of a scheme without credentials', () => 'Negotiate', 401, 'invalid_client'],
    ['that is no base64', () => 'Basic %%%', 400, 'invalid_request'],
    ['without a colon', () => `Basic ${Buffer.from('x').toString('base64')}`, 400, 'invalid_request'],
    ['without a secret', () => basic(confidential.id, ''), 401, 'invalid_client'],
    ['without a secret, of a public client', () => basic(client.id, ''), 401, 'invalid_client'],
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

describe('how often one address asks for tokens', () => {
  it('is a hundred times at once', async () => {
    const own = await startRig(sockets)
    const form = { grant_type: 'refresh_token', client_id: 'AAAAAAAAAAAAAAAAAAAAAA', refresh_token: 'x' }
    const answers = await Promise.all(Array.from({ length: 103 }, () => postForm(`${own.issuer}/oauth/token`, form)))
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(3)
  })
})
