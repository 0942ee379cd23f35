import { UnsecuredJWT } from 'jose'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { authority } from '../../../support/examine/check/certificates.ts'
import {
  documents,
  type Folder,
  identityProvider,
  mcp,
  oauth,
  openFolder,
  type Site,
  site,
} from '../../../support/examine/check/rig.ts'

let folder: Folder
let backend: Site
const open: { close(): Promise<void> }[] = []
const keep = <T extends { close(): Promise<void> }>(made: T): T => {
  open.push(made)
  return made
}

beforeAll(async () => {
  folder = await openFolder()
  backend = keep(await site({ '/mcp': mcp() }))
  await folder.write('client-secret', 'sesame')
})
afterAll(async () => {
  await Promise.all(open.map((each) => each.close()))
  await folder.remove()
})

type Answers = Parameters<typeof identityProvider>[0]
const provider = async (answers?: Answers) => keep(await identityProvider(answers))
const write = (auth: object, route: object = {}) =>
  folder.write(
    'proxy.yaml',
    documents({ target: `${backend.url}/mcp`, ...route }, { type: 'unauthenticated' }, { auth }),
  )

/** The section for a provider with these answers, and these fields beside its issuer. */
const withAnswers =
  (answers?: Answers, more: (url: string) => object = () => ({})) =>
  async () => {
    const { url } = await provider(answers)
    return oauth(url, more(url))
  }
const INTROSPECTS = (url: string) => ({
  introspectionUrl: `${url}/introspect`,
  clientId: 'me',
  clientSecretFile: './client-secret',
})

type Broken = readonly [string, () => Promise<object>, string, RegExp]
const BROKEN: readonly Broken[] = [
  [
    'has no discovery document',
    withAnswers(() => ({ '/.well-known/openid-configuration': () => ({ status: 404 }) })),
    'discovery',
    /answered 404 at http:\/\/127\.0\.0\.1:\d+\/\.well-known\/openid-configuration/,
  ],
  [
    'has a document for another issuer',
    withAnswers((url) => ({
      '/.well-known/openid-configuration': () => ({ body: { issuer: `${url()}/`, jwks_uri: `${url()}/jwks` } }),
    })),
    'discovery',
    /is for the issuer "http:\/\/127\.0\.0\.1:\d+\/"/,
  ],
  [
    'has a document that is no JSON',
    withAnswers(() => ({ '/.well-known/openid-configuration': () => ({ body: '<html>' }) })),
    'discovery',
    /identity_provider_error/,
  ],
  [
    'has a document without jwks_uri',
    withAnswers((url) => ({ '/.well-known/openid-configuration': () => ({ body: { issuer: url() } }) })),
    'discovery',
    /has no https jwks_uri/,
  ],
  [
    'is broken',
    withAnswers(() => ({ '/.well-known/openid-configuration': () => ({ status: 500 }) })),
    'discovery',
    /returned 500/,
  ],
  ['cannot give its keys', withAnswers(() => ({ '/jwks': () => ({ status: 503 }) })), 'keys', /returned 503/],
  ['has no key', withAnswers(() => ({ '/jwks': () => ({ body: { keys: [] } }) })), 'keys', /no signature key/],
  [
    'has keys for encryption only',
    withAnswers(() => ({ '/jwks': () => ({ body: { keys: [{ kty: 'RSA', use: 'enc', n: 'AQAB', e: 'AQAB' }] } }) })),
    'keys',
    /no signature key/,
  ],
  [
    'has secret keys only',
    withAnswers(() => ({ '/jwks': () => ({ body: { keys: [{ kty: 'oct', alg: 'HS256' }] } }) })),
    'keys',
    /no key has a supported algorithm/,
  ],
  [
    'has its keys elsewhere than jwksUrl says',
    withAnswers(undefined, (url) => ({ jwksUrl: `${url}/keys` })),
    'keys',
    /answered 404 at http:\/\/127\.0\.0\.1:\d+\/keys/,
  ],
  [
    'refuses the client at introspection',
    withAnswers(() => ({ '/introspect': () => ({ status: 401 }) }), INTROSPECTS),
    'introspection',
    /answered 401/,
  ],
  [
    'has its introspection elsewhere than introspectionUrl says',
    withAnswers(() => ({ '/introspect': () => ({ status: 404 }) }), INTROSPECTS),
    'introspection',
    /answered 404 at http:\/\/127\.0\.0\.1:\d+\/introspect/,
  ],
  [
    'takes every token for active',
    withAnswers(() => ({ '/introspect': () => ({ body: { active: true } }) }), INTROSPECTS),
    'introspection',
    /invalid token as active/,
  ],
  [
    'answers introspection with something else',
    withAnswers(() => ({ '/introspect': () => ({ body: { ok: 1 } }) }), INTROSPECTS),
    'introspection',
    /active is not a boolean/,
  ],
  [
    'has another time',
    withAnswers((url) => ({
      '/jwks': () => ({ status: 503 }),
      '/.well-known/openid-configuration': () => ({
        headers: { date: new Date(Date.now() + 3_600_000).toUTCString() },
        body: { issuer: url(), jwks_uri: `${url()}/jwks2` },
      }),
      '/jwks2': () => ({
        headers: { date: new Date(Date.now() + 3_600_000).toUTCString() },
        body: { keys: [{ kty: 'OKP', crv: 'Ed25519', x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo' }] },
      }),
    })),
    'clock',
    /3600 s ahead of this machine; tolerance 30 s/,
  ],
  [
    'is at a private address that is not allowed',
    () => Promise.resolve(oauth('https://10.255.255.1')),
    'issuer.connection',
    /^blocked_address/,
  ],
  [
    'is at the address of cloud metadata',
    () => Promise.resolve(oauth('https://169.254.169.254', { allowPrivateIP: true })),
    'issuer.connection',
    /^blocked_address/,
  ],
  [
    'has a name that does not exist',
    () => Promise.resolve(oauth('https://nowhere.invalid')),
    'issuer.name',
    /^(ENOTFOUND|EAI_AGAIN)/,
  ],
  [
    'needs an authority whose file is missing',
    () => Promise.resolve(oauth('https://127.0.0.1:1', { caCertPath: './nowhere.pem' })),
    'certificate',
    /^there is no file/,
  ],
  [
    'needs a client secret whose file is missing',
    withAnswers(undefined, (url) => ({ ...INTROSPECTS(url), clientSecretFile: './nowhere' })),
    'file',
    /^there is no file/,
  ],
  [
    'needs a token whose file is missing',
    withAnswers(undefined, () => ({ authTokenFile: './nowhere' })),
    'file',
    /^there is no file/,
  ],
]

describe('extauth check names what is wrong when an identity provider', () => {
  it.each(BROKEN)('%s', async (_, section, check, detail) => {
    await write(await section())
    const { code, checks, out } = await folder.check()
    const failed = checks.filter(({ status }) => status === 'failed')
    expect(failed.map((each) => each.check)).toContain(check)
    // The consequences may be reported too: without the file no request can be sent.
    if (check !== 'file') expect(failed).toHaveLength(1)
    expect(failed[0]?.detail).toMatch(detail)
    expect(failed[0]?.remedy).toMatch(/\w{4}/)
    expect(code).toBe(1)
    expect(out).not.toContain('sesame')
  })

  it('shows a certificate that has ended', async () => {
    const ca = await authority('idp CA')
    await folder.write('idp-ca.pem', ca.cert)
    const { url } = keep(await site({}, await ca.issue('127.0.0.1', [-9, -2])))
    await write(oauth(url, { caCertPath: './idp-ca.pem' }))
    const { checks } = await folder.check()
    expect(checks.filter(({ status }) => status === 'failed')).toMatchObject([{ check: 'issuer.tls' }])
  })

  it('has everything in order: says which algorithms its keys are for', async () => {
    const { url } = await provider()
    await write(oauth(url, INTROSPECTS(url)))
    const { code, checks } = await folder.check()
    expect(checks.filter(({ status }) => status === 'failed' || status === 'warning')).toEqual([])
    expect(checks.find(({ check }) => check === 'keys')?.detail).toBe('1 key for ES256')
    expect(checks.find(({ check }) => check === 'introspection')?.detail).toContain('accepts the client me')
    expect(code).toBe(0)
  })

  it('is shown a secret, or a token of a file, as clientAuth says', async () => {
    const { url } = await provider()
    const showing = async (clientAuth: object) => {
      await write(oauth(url, { introspectionUrl: `${url}/introspect`, clientAuth }))
      return (await folder.check()).checks
    }
    const secretRef = { name: 'client', key: 'secret' }
    const absent = await showing({ method: 'clientSecretBasic', clientId: 'me', secretRef })
    expect(absent.filter(({ status }) => status === 'failed')).toMatchObject([
      { check: 'secret', subject: 'client/secret' },
      { check: 'introspection', detail: expect.stringContaining('secret_unavailable') as unknown },
    ])
    await folder.write('secrets/client/secret', 'sesame')
    const there = await showing({ method: 'clientSecretBasic', clientId: 'me', secretRef })
    expect(there.filter(({ status }) => status === 'failed')).toEqual([])
    expect(there.find(({ check }) => check === 'introspection')?.detail).toContain('accepts the client me')
    await folder.write('token', new UnsecuredJWT({ exp: 1_000_000_000 }).encode().replace(/\.$/, '.c2ln'))
    const ended = await showing({ method: 'tokenFile', clientId: 'me', tokenFile: { path: 'token' } })
    expect(ended.filter(({ status }) => status === 'failed')).toMatchObject([
      { check: 'file', detail: 'expired on 2001-09-09T01:46:40.000Z' },
      { check: 'introspection', detail: expect.stringContaining('has expired') as unknown },
    ])
  })

  it('has no document and is asked about tokens only: that is as it may be', async () => {
    const { url } = await provider(() => ({ '/.well-known/openid-configuration': () => ({ status: 404 }) }))
    await write(oauth(url, INTROSPECTS(url)))
    const { code, checks } = await folder.check()
    expect(checks.filter(({ status }) => status === 'skipped').map(({ check }) => check)).toContain('discovery')
    expect(code).toBe(0)
  })
})

describe('extauth check shows the token of a caller to the route', () => {
  it.each([
    ['that has ended', {}, -600, {}, /^expired_token/],
    ['for another audience', { aud: 'other' }, 300, {}, /^invalid_token.*aud/],
    ['without a scope that is required', { scope: 'a' }, 300, { requiredScopes: ['a', 'b'] }, /lacks the scopes b/],
  ])('%s', async (_, claims, lifetime, route, detail) => {
    const idp = await provider()
    await write(oauth(idp.url), route)
    const token = await idp.token(claims, lifetime)
    const { code, checks, out } = await folder.check(token)
    const failed = checks.filter(({ status }) => status === 'failed')
    expect(failed.map(({ check }) => check)).toEqual(['token'])
    expect(failed[0]?.detail).toMatch(detail)
    expect(code).toBe(1)
    expect(out).not.toContain(token)
  })

  it('that is of another issuer: a failure where the route was named', async () => {
    const [idp, other] = [await provider(), await provider()]
    await write(oauth(idp.url))
    const { checks } = await folder.check(await other.token())
    const [failed, ...more] = checks.filter(({ status }) => status === 'failed')
    expect(more).toEqual([])
    expect(failed).toMatchObject({
      check: 'token',
      detail: `invalid_token: the token's issuer (iss) matches no provider; received ${other.url}, expected ${idp.url}`,
      remedy: expect.stringContaining('match exactly'),
    })
  })

  it('that is good: says who it is', async () => {
    const idp = await provider()
    await write(oauth(idp.url))
    const { code, checks } = await folder.check(await idp.token())
    expect(checks.find(({ check }) => check === 'token')).toMatchObject({ detail: 'accepted by idp as ada' })
    expect(code).toBe(0)
  })
})
