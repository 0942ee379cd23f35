import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { authority } from '../../../support/examine/check/certificates.ts'
import {
  ANONYMOUS,
  type Answering,
  documents,
  type Folder,
  identityProvider,
  mcp,
  oauth,
  openFolder,
  type Site,
  site,
  stsCredentials,
  stsError,
} from '../../../support/examine/check/rig.ts'

let folder: Folder
let backend: Site
let idp: Awaited<ReturnType<typeof identityProvider>>
const open: { close(): Promise<void> }[] = []
const keep = <T extends { close(): Promise<void> }>(made: T): T => {
  open.push(made)
  return made
}
const serve = async (answers: Readonly<Record<string, Answering>>) => keep(await site(answers))

beforeAll(async () => {
  folder = await openFolder()
  backend = await serve({ '/mcp': mcp() })
  idp = keep(await identityProvider())
  await folder.write('secrets/client/secret', 'sesame')
  await folder.write('secrets/short/key', 'short')
  await folder.write('secrets/long/key', 'k'.repeat(32))
})
afterAll(async () => {
  await Promise.all(open.map((each) => each.close()))
  await folder.remove()
})

const failedOf = async (auth: object, token?: string, spec: object = {}) => {
  await folder.write('proxy.yaml', documents({ target: `${backend.url}/mcp` }, auth, { auth: oauth(idp.url), ...spec }))
  const result = await folder.check(token)
  expect(result.out).not.toContain('sesame')
  return { ...result, failed: result.checks.filter(({ status }) => status === 'failed') }
}

const exchange = (tokenUrl: string) => ({
  type: 'tokenExchange',
  tokenExchange: { tokenUrl, audience: 'backend', clientId: 'me', clientSecretRef: { name: 'client', key: 'secret' } },
})
const says =
  (status: number, error: string): Answering =>
  () => ({ status, body: { error } })

describe('extauth check names what is wrong at a token endpoint', () => {
  it.each<[string, Answering | undefined, boolean, string, RegExp]>([
    ['it does not know the client', says(401, 'invalid_client'), false, 'exchange', /^config_error/],
    [
      'it does not exchange',
      says(400, 'unsupported_grant_type'),
      false,
      'exchange',
      /unsupported_grant_type|exchange_failed|config_error/,
    ],
    ['it is not there', undefined, false, 'exchange', /./],
    ['it is broken', () => ({ status: 500 }), false, 'exchange', /^identity_provider_unavailable/],
    [
      'it exchanges anything',
      () => ({
        body: {
          access_token: 'x',
          issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
          token_type: 'Bearer',
        },
      }),
      false,
      'exchange',
      /exchanged an invalid token/,
    ],
    ['it refuses this caller', says(400, 'access_denied'), true, 'exchange', /^exchange_denied/],
    ['its answer has no token', () => ({ body: { ok: true } }), true, 'exchange', /^exchange_failed/],
  ])('%s', async (_, answering, withToken, check, detail) => {
    const { url } = await serve(answering === undefined ? {} : { '/token': answering })
    const { failed, code } = await failedOf(exchange(`${url}/token`), withToken ? await idp.token() : undefined)
    expect(failed.map((each) => each.check)).toEqual([check])
    expect(failed[0]?.detail).toMatch(detail)
    expect(code).toBe(1)
  })

  it('another endpoint does not give the token of who acts', async () => {
    const { url } = await serve({ '/token': says(400, 'invalid_grant'), '/actor': says(401, 'invalid_client') })
    const clientSecretRef = { name: 'client', key: 'secret' }
    const { type, tokenExchange } = exchange(`${url}/token`)
    const actor = { clientCredentials: { tokenUrl: `${url}/actor`, clientId: 'agent', clientSecretRef } }
    const { failed } = await failedOf({ type, tokenExchange: { ...tokenExchange, actor } })
    expect(failed).toMatchObject([{ check: 'exchange' }])
    expect(failed[0]?.detail).toMatch(/^config_error.*actor token endpoint answered 401 invalid_client/s)
  })

  it('no server listens there', async () => {
    const gone = await site({})
    await gone.close()
    expect((await failedOf(exchange(`${gone.url}/token`))).failed).toMatchObject([{ check: 'exchange.connection' }])
  })

  it('all is well: exchanges the token of a caller and shows the new one to the backend', async () => {
    const { url } = idp
    const wants = await serve({ '/mcp': mcp('Bearer made') })
    await folder.write(
      'proxy.yaml',
      documents({ target: `${wants.url}/mcp` }, exchange(`${url}/token`), { auth: oauth(url) }),
    )
    const without = await folder.check()
    expect(without.checks.find(({ check }) => check === 'exchange')?.detail).toContain('accepts the client me')
    expect(without.checks.find(({ check }) => check === 'mcp')).toMatchObject({ status: 'skipped' })
    const { code, checks } = await folder.check(await idp.token())
    // No proxy runs that could be connected to.
    expect(checks.filter(({ check, status }) => status !== 'ok' && check !== 'resource')).toEqual([])
    expect(checks.map(({ check }) => check)).toContain('mcp')
    expect([without.code, code]).toEqual([0, 0])
  })
})

const ROLE = 'arn:aws:iam::123456789012:role/reader'
const cloudSts = (stsEndpoint: string, more: object = {}) => ({
  type: 'cloudSts',
  cloudSts: { region: 'eu-west-1', stsEndpoint, roleMappings: [{ claim: 'readers', roleArn: ROLE }], ...more },
})

describe('extauth check names what is wrong with a role', () => {
  it.each<[string, Answering, object, object, string, RegExp]>([
    ['the caller gets none', stsCredentials, {}, { groups: [] }, 'role', /^no_role/],
    ['there is no session name', stsCredentials, { sessionNameClaim: 'email' }, {}, 'role', /^session_name_missing/],
    ['the trust policy refuses', () => stsError('AccessDenied'), {}, {}, 'assume-role', /^role_denied/],
    ['STS does not know the issuer', () => stsError('InvalidIdentityToken'), {}, {}, 'assume-role', /^config_error/],
    ['STS throttles', () => stsError('Throttling'), {}, {}, 'assume-role', /^sts_throttled/],
    [
      'STS has another time',
      () => ({
        ...stsCredentials(),
        headers: { 'content-type': 'text/xml', date: new Date(Date.now() - 600_000).toUTCString() },
      }),
      {},
      {},
      'clock',
      /behind this machine/,
    ],
  ])('%s', async (_, answering, more, claims, check, detail) => {
    const { url } = await serve({ '/': answering })
    const { failed, code } = await failedOf(cloudSts(url, more), await idp.token(claims))
    expect(failed.map((each) => each.check)).toEqual([check])
    expect(failed[0]?.detail).toMatch(detail)
    expect(code).toBe(1)
  })

  it.each<[string, () => Promise<string>, string]>([
    [
      'STS is not there',
      async () => {
        const gone = await site({})
        await gone.close()
        return gone.url
      },
      'sts.connection',
    ],
    ['STS is broken', async () => (await serve({ '/': () => ({ status: 503 }) })).url, 'sts'],
  ])('%s', async (_, endpoint, check) => {
    const { failed } = await failedOf(cloudSts(await endpoint()))
    expect(failed.map((each) => each.check)).toEqual([check])
  })

  it('all is well: assumes the role, signs, and says which it was', async () => {
    const { url } = await serve({ '/': stsCredentials })
    const { checks, code } = await failedOf(cloudSts(url), await idp.token())
    // No proxy runs that could be connected to.
    expect(checks.filter(({ check, status }) => status !== 'ok' && check !== 'resource')).toEqual([])
    expect(checks.find(({ check }) => check === 'role')?.detail).toBe(`${ROLE} as ada (by a mapping)`)
    expect(code).toBe(0)
  })
})

describe('extauth check names what is wrong with the proxy itself', () => {
  const NONE = { type: 'unauthenticated' }
  it.each<[string, () => Promise<object>, string, RegExp]>([
    [
      'certificate and key of the listener are no pair',
      async () => {
        const ca = await authority('listener CA')
        await folder.write('tls.pem', (await ca.issue('proxy.test')).cert)
        await folder.write('tls.key', (await ca.issue('proxy.test')).key)
        return { listen: { address: '127.0.0.1:0', tls: { certFile: './tls.pem', keyFile: './tls.key' } } }
      },
      'certificate',
      /it is the key of another/,
    ],
    [
      'the certificate of the listener has ended',
      async () => {
        const pair = await (await authority('listener CA')).issue('proxy.test', [-9, -2])
        await folder.write('tls2.pem', pair.cert)
        await folder.write('tls2.key', pair.key)
        return { listen: { address: '127.0.0.1:0', tls: { certFile: './tls2.pem', keyFile: './tls2.key' } } }
      },
      'certificate',
      /expired on/,
    ],
    [
      'the key of the listener is none',
      async () => {
        await folder.write('tls3.pem', (await (await authority('listener CA')).issue('proxy.test')).cert)
        await folder.write('tls3.key', 'no key')
        return { listen: { address: '127.0.0.1:0', tls: { certFile: './tls3.pem', keyFile: './tls3.key' } } }
      },
      'certificate',
      /holds no private key/,
    ],
    [
      'the token of the admin listener is missing',
      () => Promise.resolve({ admin: { tokenFile: './nowhere' } }),
      'file',
      /^there is no file/,
    ],
    [
      'the key of sessions is missing',
      () => Promise.resolve({ sessionKeySecretRef: { name: 'nowhere', key: 'k' } }),
      'secret',
      /does not exist/,
    ],
  ])('%s', async (_, spec, check, detail) => {
    const { failed, code } = await failedOf(NONE, undefined, { auth: ANONYMOUS, ...(await spec()) })
    expect(failed.map((each) => each.check)).toEqual([check])
    expect(failed[0]?.detail).toMatch(detail)
    expect(code).toBe(1)
  })

  const loginAt = (authorization: string, hmac: string) => ({
    type: 'embeddedAuthServer',
    embeddedAuthServer: {
      issuer: 'http://localhost:8080',
      hmacSecretRefs: [{ name: hmac, key: 'key' }],
      upstreamProviders: [
        {
          name: 'up',
          type: 'oauth2',
          oauth2Config: {
            authorizationEndpoint: `${authorization}/authorize`,
            tokenEndpoint: `${authorization}/token`,
            clientId: 'me',
            clientSecretRef: { name: 'client', key: 'secret' },
            userInfo: { endpointUrl: `${authorization}/me` },
          },
        },
      ],
    },
  })
  const standing = async () =>
    (
      await serve({
        '/authorize': () => ({}),
        '/token': () => ({ status: 400, body: { error: 'invalid_grant' } }),
        '/me': () => ({ status: 401 }),
      })
    ).url
  it.each([
    ['the secret of the authorization server is too short', standing, 'short', ['authserver']],
    ['the secret of the authorization server is missing', standing, 'nowhere', ['secret', 'authserver']],
    [
      'the upstream provider is not there',
      async () => {
        const gone = await site({})
        await gone.close()
        return gone.url
      },
      'long',
      ['upstream.connection'],
    ],
  ])('%s', async (_, url, hmac, expected) => {
    const { failed } = await failedOf(loginAt(await url(), hmac), undefined, {
      auth: undefined,
      listen: { address: '127.0.0.1:8080' },
    })
    expect(failed.map(({ check }) => check)).toEqual(expected)
  })
})
