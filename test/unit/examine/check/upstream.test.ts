import { generateKeyPairSync } from 'node:crypto'
import { UnsecuredJWT } from 'jose'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createSockets } from '../../../support/sockets.ts'
import { TLS } from '../../../support/tls.ts'
import {
  type Answering,
  documents,
  type Folder,
  openFolder,
  type Site,
  site,
} from '../../../support/examine/check/rig.ts'

let folder: Folder
const open: Site[] = []
const serve = async (answers: Readonly<Record<string, Answering>>): Promise<Site> => {
  const made = await site(answers)
  open.push(made)
  return made
}

beforeAll(async () => {
  folder = await openFolder()
  await folder.write('secrets/client/secret', 'sesame')
  await folder.write('secrets/client/ca', TLS.ca.toString())
  await folder.write('secrets/hmac/key', 'k'.repeat(32))
  const pem = (key: ReturnType<typeof generateKeyPairSync>['privateKey']) =>
    key.export({ type: 'pkcs8', format: 'pem' }).toString()
  await folder.write('secrets/sign/good', pem(generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey))
  await folder.write('secrets/sign/weak', pem(generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey))
  await folder.write('secrets/sign/text', 'no key')
})
afterAll(async () => {
  await Promise.all(open.map((each) => each.close()))
  await folder.remove()
})

const BASIC = `Basic ${Buffer.from('me:sesame').toString('base64')}`
/** A token endpoint that knows the client, and no code. */
const token: Answering = ({ headers }) =>
  headers.authorization === BASIC
    ? { status: 400, body: { error: 'invalid_grant' } }
    : { status: 401, body: { error: 'invalid_client' } }
const GOOD: Readonly<Record<string, Answering>> = {
  '/authorize': () => ({ body: '<html></html>' }),
  '/token': token,
  '/me': ({ headers }) => ({ status: headers.authorization?.startsWith('Bearer ') === true ? 401 : 400 }),
}

const provider = (changed: Readonly<Record<string, Answering>> = {}) => serve({ ...GOOD, ...changed })

const client = { clientId: 'me', clientSecretRef: { name: 'client', key: 'secret' } }
const oauth2 = (url: string, more: object = {}) => ({
  name: 'up',
  type: 'oauth2',
  oauth2Config: {
    authorizationEndpoint: `${url}/authorize`,
    tokenEndpoint: `${url}/token`,
    userInfo: { endpointUrl: `${url}/me` },
    ...client,
    ...more,
  },
})

async function check(upstream: object, more: object = {}, ...args: readonly string[]) {
  const embeddedAuthServer = {
    issuer: 'http://localhost:8080',
    hmacSecretRefs: [{ name: 'hmac', key: 'key' }],
    signingKeySecretRefs: [{ name: 'sign', key: 'good' }],
    upstreamProviders: [upstream],
    ...more,
  }
  const spec = { listen: { address: '127.0.0.1:8080' } }
  const backend = await serve({})
  await folder.write(
    'proxy.yaml',
    documents({ target: `${backend.url}/mcp` }, { type: 'embeddedAuthServer', embeddedAuthServer }, spec),
  )
  const { checks, out } = await folder.check(undefined, ...args)
  expect(out).not.toContain('sesame')
  const wrong = checks.filter(({ status }) => status === 'failed' || status === 'warning')
  return { checks, wrong: wrong.filter(({ check: name }) => !name.startsWith('target') && name !== 'mcp') }
}

describe('extauth check goes the way of a login', () => {
  it('says that all is well where it is, endpoint by endpoint', async () => {
    const { checks } = await check(oauth2((await provider()).url))
    const details = checks.filter(({ check: name }) => name.startsWith('upstream')).map((each) => each.detail)
    expect(details).toEqual([
      expect.anything(),
      'connected',
      expect.stringMatching(/^users are redirected to http:.*\/authorize$/),
      'accepts the client me and rejects an invalid code',
      'rejects an invalid refresh token (token endpoint answered 400 invalid_grant): treated as an expired grant',
      'responds and rejects an invalid token',
    ])
    expect(checks.find(({ check: name }) => name === 'authserver')?.status).not.toBe('failed')
  })

  it('reports an expired or missing credential, and that logins fail', async () => {
    const { url } = await provider()
    const resultOf = (clientAuth: object) =>
      check(oauth2(url, { clientId: undefined, clientSecretRef: undefined, clientAuth }))
    const exp = (seconds: number) => new UnsecuredJWT({ exp: seconds }).encode().replace(/\.$/, '.c2ln')
    await folder.write('tokens/ended', exp(1_000_000_000))
    await folder.write('tokens/good', exp(4_000_000_000))
    const ended = await resultOf({ method: 'tokenFile', clientId: 'me', tokenFile: { path: 'tokens/ended' } })
    expect(ended.wrong).toMatchObject([
      { check: 'file', detail: 'expired on 2001-09-09T01:46:40.000Z' },
      { check: 'upstream.client', detail: expect.stringMatching(/^secret_unavailable: .*has expired/) as unknown },
    ])
    const nowhere = await resultOf({ method: 'tokenFile', clientId: 'me', tokenFile: { path: 'tokens/none' } })
    expect(nowhere.wrong).toContainEqual(
      expect.objectContaining({
        check: 'authserver',
        status: 'failed',
        detail: expect.stringContaining('tokens/none') as unknown,
      }),
    )
    const good = await resultOf({ method: 'tokenFile', clientId: 'me', tokenFile: { path: 'tokens/good' } })
    // The mock requires a secret by Basic.
    expect(good.wrong).toMatchObject([
      { check: 'upstream.client', detail: expect.stringContaining('invalid_client') as unknown },
    ])
  })

  const says =
    (status: number, error?: string): Answering =>
    () => ({ status, body: error === undefined ? {} : { error } })
  it.each<[string, Readonly<Record<string, Answering>>, string, RegExp, RegExp]>([
    [
      'client secret',
      { '/token': says(401, 'invalid_client') },
      'upstream.client',
      /invalid_client/,
      /clientSecretRef/,
    ],
    ['client, without an error body', { '/token': says(401) }, 'upstream.client', /invalid_client/, /clientId/],
    [
      'redirect URI',
      { '/token': says(400, 'redirect_uri_mismatch') },
      'upstream.client',
      /redirect_uri_mismatch/,
      /Register the redirect URI http:\/\/127.0.0.1:8080\/oauth\/callback/,
    ],
    ['token endpoint', { '/token': says(404) }, 'upstream.client', /http:.*\/token answered 404/, /\w/],
    ['realm', { '/token': says(404, 'Realm does not exist') }, 'upstream.client', /http:.*\/token answered 404/, /\w/],
    ['authorization endpoint', { '/authorize': says(404) }, 'upstream', /returns 404/, /authorizationEndpoint/],
    ['login', { '/authorize': says(400) }, 'upstream', /returns 400/, /Register the redirect URI http/],
    ['provider', { '/authorize': says(503) }, 'upstream', /returns 503/, /provider/],
    ['user-info endpoint', { '/me': says(404) }, 'upstream.user-info', /http:.*\/me returned 404/, /endpointUrl/],
  ])('names a wrong %s', async (what, changed, name, detail, remedy) => {
    const { wrong } = await check(oauth2((await provider(changed)).url))
    expect(wrong.map((each) => each.check)).toEqual([name])
    expect(wrong[0]?.detail).toMatch(detail)
    expect(wrong[0]?.remedy).toMatch(remedy)
    expect(wrong[0]?.status).toBe(what === 'login' ? 'warning' : 'failed')
  })

  it('sends no request if the CA certificates cannot be read', async () => {
    let asked = 0
    const { url } = await provider({ '/authorize': () => ({ status: (asked += 1) && 200 }) })
    const { checks } = await check({ ...oauth2(url), caBundleRef: { name: 'client', key: 'secret' } })
    const line = checks.find((each) => each.check === 'upstream')
    expect(line).toMatchObject({ status: 'skipped', detail: 'not tried: its CA certificates are unusable' })
    expect(asked).toBe(0)
  })

  it('does not guess where the answer says nothing of the client', async () => {
    const { checks, wrong } = await check(oauth2((await provider({ '/token': says(400, 'unknown') })).url))
    expect(wrong).toEqual([])
    expect(checks.find((each) => each.check === 'upstream.client')).toMatchObject({ status: 'skipped' })
  })

  it.each([
    ['weak', /RSA keys need 2048/],
    ['text', /is not a private key in PEM/],
  ])('tries the signing key (%s)', async (key, detail) => {
    const { wrong } = await check(oauth2((await provider()).url), { signingKeySecretRefs: [{ name: 'sign', key }] })
    expect(wrong.map((each) => each.check)).toEqual(['authserver'])
    expect(wrong[0]?.detail).toMatch(detail)
  })

  it('tries a key that only verifies, too', async () => {
    const refs = { signingKeySecretRefs: ['good', 'text'].map((key) => ({ name: 'sign', key })) }
    const { wrong } = await check(oauth2((await provider()).url), refs)
    expect(wrong.map((each) => each.check)).toEqual(['authserver'])
  })
})

it('a client that registers itself is not registered by a look', async () => {
  const sockets = createSockets()
  let asked = 0
  const url = await sockets.https(TLS.server, (_request, response) => {
    asked += 1
    response.writeHead(404).end()
  })
  const { url: here } = await provider()
  const registering = oauth2(here, {
    clientId: undefined,
    clientSecretRef: undefined,
    dcrConfig: { registrationEndpoint: `${url}/register` },
  })
  const { checks } = await check({ ...registering, caBundleRef: { name: 'client', key: 'ca' } })
  expect(JSON.stringify(checks)).toContain('not tried: the first login registers the client')
  expect(asked).toBe(0)
  await sockets.closeAll()
})

describe('extauth check of a refresh', () => {
  const refreshLine = async (status: number, body: object, ...args: readonly string[]) => {
    const refreshing: Answering = (request, form) =>
      form.includes('grant_type=refresh_token') ? { status, body } : token(request, form)
    const { url } = await provider({ '/token': refreshing })
    const { checks } = await check(oauth2(url, { scopes: ['a'] }), {}, ...args)
    return checks.find(({ check: name }) => name === 'upstream.refresh')
  }

  it.each<[number, object, string, RegExp]>([
    [400, { error: 'invalid_grant' }, 'ok', /400 invalid_grant\): treated as an expired grant$/],
    [403, { error: 'unauthorized_client' }, 'ok', /403 unauthorized_client\): treated as an expired grant, retried/],
    [400, { status: 'BAD_REFRESH_TOKEN' }, 'ok', /400 without an OAuth error\): treated as an expired grant, /],
    [400, { error: 'invalid_request', error_codes: [90009] }, 'ok', /AADSTS90009/],
    [400, { error: 'unsupported_grant_type' }, 'warning', /treated as a configuration error$/],
    [404, {}, 'warning', /treated as an outage$/],
    [200, { access_token: 'sesame', token_type: 'Bearer' }, 'failed', /accepted an invalid refresh token/],
  ])('%i %j: %s', async (status, body, verdict, detail) => {
    expect(await refreshLine(status, body)).toMatchObject({
      status: verdict,
      detail: expect.stringMatching(detail) as string,
    })
  })

  it('tries a real one on request', async () => {
    const args = ['--refresh-token-file', `up=${await folder.write('real', 'sesame-refresh')}`]
    const tokens = {
      access_token: 'sesame',
      token_type: 'Bearer',
      expires_in: 60,
      refresh_token: 'sesame-2',
      scope: 'a',
    }
    expect(await refreshLine(200, tokens, ...args)).toMatchObject({
      status: 'ok',
      detail: 'refreshed: new refresh token, with a lifetime, scopes a',
    })
    expect(await refreshLine(400, { error: 'invalid_grant' }, ...args)).toMatchObject({ status: 'failed' })
  })
})
