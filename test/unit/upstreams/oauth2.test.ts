import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { monotonic, Secret } from '../../../src/core/index.ts'
import { START_MS } from '../../support/ports.ts'
import { createSockets } from '../../support/sockets.ts'
import { ACCESS, startIdp, type Idp } from '../../support/upstreams/idp.ts'
import { createRig, IN_TIME, LEG } from '../../support/upstreams/rig.ts'

const sockets = createSockets()
let idp: Idp
beforeEach(async () => {
  idp = await startIdp(sockets)
  idp.tokens = { id_token: undefined }
})
afterEach(() => sockets.closeAll())

const came = new URLSearchParams({ code: 'code-1', state: LEG.state })
const login = (config: Readonly<Record<string, unknown>> = {}) =>
  createRig(sockets).oauth2(idp, config).finish(LEG, came)

describe('an OAuth 2.0 upstream', () => {
  it('asks for a code without nonce, and without scope where none is configured', async () => {
    const { oauth2 } = createRig(sockets)
    const names = async (config: object) => [
      ...(await oauth2(idp, { ...config }).authorizationUrl(LEG)).searchParams.keys(),
    ]
    const always = ['response_type', 'client_id', 'redirect_uri', 'state', 'code_challenge', 'code_challenge_method']
    expect(await names({})).toEqual(always)
    expect((await names({ scopes: ['repo', 'user:email'] })).toSorted()).toEqual([...always, 'scope'].toSorted())
  })

  it('takes nothing of the endpoint’s own query that is ours to say', async () => {
    const url = await createRig(sockets)
      .oauth2(idp, { authorizationEndpoint: `${idp.url}/authorize?response_type=token&state=x&tenant=a` })
      .authorizationUrl(LEG)
    expect(url.searchParams.getAll('response_type')).toEqual(['code'])
    expect(url.searchParams.getAll('state')).toEqual([LEG.state])
    expect(url.searchParams.get('tenant')).toBe('a')
  })

  it('knows the user by user info', async () => {
    idp.user = { sub: 'u', name: 'N', email: 'e@example.com', groups: ['a'] }
    const { subject, claims, tokens } = await login({ scopes: ['repo'] })
    expect(subject).toBe('u')
    expect(claims).toEqual({ sub: 'u', name: 'N', email: 'e@example.com', groups: ['a'] })
    expect(tokens).toMatchObject({ idToken: undefined, expiresAtMs: START_MS + 3_600_000, scopes: ['repo'] })
    expect(createRig(sockets).oauth2(idp).identityProvider).toBe(`${idp.url}/userinfo`)
  })

  it('gives each login a subject of its own where the upstream never says who it is', async () => {
    const oauth2 = createRig(sockets).oauth2(idp, { userInfo: undefined })
    const [first, second] = [await oauth2.finish(LEG, came), await oauth2.finish(LEG, came)]
    expect([first.subject, first.claims]).toEqual([expect.stringMatching(/^synthesized-[0-9a-f-]{36}$/), {}])
    expect(second.subject).not.toBe(first.subject)
    const { subject } = await oauth2.refresh(
      { ...first.tokens, refreshToken: new Secret('r') },
      first.subject,
      monotonic(START_MS + 60_000),
    )
    expect(subject).toBe(first.subject)
  })

  it('keeps no ID token: nothing says what one from here would have to be', async () => {
    idp.tokens = {}
    expect((await login()).tokens.idToken).toBeUndefined()
  })

  it.each<[string, unknown, readonly string[]]>([
    ['with spaces', 'repo user:email', ['repo', 'user:email']],
    ['with commas', 'repo,user:email', ['repo', 'user:email']],
    ['as a list', ['repo', 'user:email'], ['repo', 'user:email']],
    ['empty', '', ['asked']],
    ['null', null, ['asked']],
  ])('reads granted scopes %s', async (_name, scope, scopes) => {
    idp.tokens = { scope }
    expect((await login({ scopes: ['asked'] })).tokens.scopes).toEqual(scopes)
  })

  it.each<[string, unknown, number | undefined]>([
    ['a number', 60, START_MS + 60_000],
    ['a numeric text', '60', START_MS + 60_000],
    ['a fraction', '60.5', START_MS + 60_500],
    ['nothing', undefined, undefined],
    ['null', null, undefined],
    ['an eternity', 1e12, START_MS + 366 * 86_400_000],
  ])('reads a lifetime that is %s', async (_name, expires_in, expiresAtMs) => {
    idp.tokens = { expires_in }
    expect((await login()).tokens.expiresAtMs).toBe(expiresAtMs)
  })
})

describe('tokenResponseMapping', () => {
  const NESTED = {
    ok: true,
    token_type: 'bot',
    expires_in: 1,
    authed_user: {
      id: 'U1',
      access_token: 'nested-access',
      refresh_token: 'nested-refresh',
      expires_in: 43_200,
      scope: 'chat:write,users:read',
      token_type: 'user',
    },
  }
  const tokenResponseMapping = {
    accessTokenPath: 'authed_user.access_token',
    refreshTokenPath: 'authed_user.refresh_token',
    expiresInPath: 'authed_user.expires_in',
    scopePath: 'authed_user.scope',
  }

  it('reads fields where they are, whatever the token type, on refresh as well', async () => {
    idp.token = { body: NESTED }
    const upstream = createRig(sockets).oauth2(idp, { tokenResponseMapping })
    const { tokens, subject } = await upstream.finish(LEG, came)
    expect([tokens.accessToken.reveal(), tokens.refreshToken?.reveal()]).toEqual(['nested-access', 'nested-refresh'])
    expect(tokens).toMatchObject({ expiresAtMs: START_MS + 43_200_000, scopes: ['chat:write', 'users:read'] })
    expect(idp.asked.at(-1)?.headers.authorization).toBe('Bearer nested-access')
    idp.token = {
      body: { ...NESTED, authed_user: { ...NESTED.authed_user, access_token: 'second', refresh_token: undefined } },
    }
    const next = await upstream.refresh(tokens, subject, IN_TIME)
    expect([next.tokens.accessToken.reveal(), next.tokens.refreshToken?.reveal()]).toEqual(['second', 'nested-refresh'])
  })

  it.each<[string, object, string, string | undefined]>([
    ['deep', { a: { b: { c: 't' } } }, 'a.b.c', 't'],
    ['in a list', { tokens: [{ value: 't' }] }, 'tokens.0.value', 't'],
    ['under a name with dots, before a path', { 'a.b': 't', a: { b: 'other' } }, 'a.b', 't'],
    ['that is not there', { a: {} }, 'a.b.c', undefined],
    ['through a text', { a: 'text' }, 'a.length', undefined],
    ['that every object has in JavaScript', { a: {} }, 'a.constructor.name', undefined],
    ['that is the prototype', {}, '__proto__.x', undefined],
    ['that is null', { a: null }, 'a', undefined],
  ])('finds a token %s', async (_name, body, accessTokenPath, found) => {
    idp.token = { body }
    const result = login({ tokenResponseMapping: { accessTokenPath } })
    if (found === undefined) await expect(result).rejects.toMatchObject({ code: 'identity_provider_error' })
    else expect((await result).tokens.accessToken.reveal()).toBe(found)
  })

  it('has the standard places for what it does not name', async () => {
    idp.token = { body: { t: 'mapped', refresh_token: 'r', expires_in: 5, scope: 'a b' } }
    const { tokens } = await login({ tokenResponseMapping: { accessTokenPath: 't' } })
    expect([tokens.refreshToken?.reveal(), tokens.expiresAtMs, tokens.scopes]).toEqual([
      'r',
      START_MS + 5000,
      ['a', 'b'],
    ])
  })

  it('does not take an error for tokens', async () => {
    idp.token = { body: { ok: false, error: 'invalid_code' } }
    await expect(login({ tokenResponseMapping })).rejects.toMatchObject({
      code: 'identity_provider_error',
      detail: 'token endpoint answered 200 invalid_code',
    })
  })
})

describe('fieldMapping', () => {
  const fields = { subjectFields: ['id', 'sub'], nameFields: ['name', 'login'], emailFields: ['mail', 'email'] }
  const info = async (user: unknown, fieldMapping: object | undefined = fields) => {
    idp.userInfo = { body: user }
    return login({ userInfo: { endpointUrl: `${idp.url}/userinfo`, ...(fieldMapping && { fieldMapping }) } })
  }

  it.each<[string, object, object]>([
    ['a number for the subject', { id: 583_231, login: 'octocat' }, { sub: '583231', name: 'octocat' }],
    ['the first that has a value', { id: '', sub: 's', name: null, login: 'l' }, { sub: 's', name: 'l' }],
    ['the first of two that have', { id: 'i', sub: 's', mail: 'm', email: 'e' }, { sub: 'i', email: 'm' }],
    ['zero', { id: 0 }, { sub: '0' }],
    ['nothing but spaces as nothing', { id: '  ', sub: 's', name: '\t' }, { sub: 's' }],
    ['neither objects nor booleans', { id: true, sub: 's', name: { first: 'A' } }, { sub: 's' }],
    ['no e-mail of another field as verified', { id: 'i', mail: 'm', email_verified: true }, { sub: 'i', email: 'm' }],
    ['a verified e-mail', { id: 'i', email: 'e', email_verified: true }, { email: 'e', email_verified: true }],
  ])('takes %s', async (_name, user, expected) => {
    const { subject, claims } = await info(user)
    expect(subject).toBe(claims['sub'])
    const shown = Object.fromEntries(
      ['sub', 'name', 'email', 'email_verified'].flatMap((name) => (name in claims ? [[name, claims[name]]] : [])),
    )
    expect(shown).toMatchObject(expected)
    expect(Object.keys(shown).filter((name) => name !== 'sub')).toEqual(
      Object.keys(expected).filter((name) => name !== 'sub'),
    )
  })

  it('takes a nested field', async () => {
    const { subject } = await info({ data: { viewer: { id: 'v' } } }, { subjectFields: ['data.viewer.id'] })
    expect(subject).toBe('v')
  })

  it.each<[string, unknown, string]>([
    ['no subject field', { login: 'octocat' }, 'no subject field'],
    ['a number that two users would share', '{"id":9007199254740993}', 'beyond 2^53'],
    ['a fraction', { id: 1.5 }, 'beyond 2^53'],
    ['a subject of 1,025 characters', { id: 'x'.repeat(1025) }, 'longer than 1024'],
    ['a list', [{ id: 'i' }], 'not a JSON object'],
    ['an error', { error: 'invalid_token' }, 'no subject field'],
  ])('refuses %s', async (_name, user, says) => {
    const failure = { code: 'identity_provider_error', detail: expect.stringContaining(says) as string }
    await expect(info(user)).rejects.toMatchObject(failure)
  })
})

describe('the way to an upstream', () => {
  it.each([['Host'], ['content-length']])('takes no additional header %j', (name) => {
    const userInfo = { endpointUrl: `${idp.url}/userinfo`, additionalHeaders: { [name]: 'v' } }
    expect(() => createRig(sockets).oauth2(idp, { userInfo })).toThrow(
      expect.objectContaining({ code: 'config_error' }),
    )
  })

  it.each([
    ['a name that is no header', { 'X Y': 'v' }],
    ['a name beyond ASCII', { é: 'v' }],
    ['a value that ends the line', { 'x-a': 'v\r\nx-b: w' }],
  ])('takes no additional header with %s: that does not even load', (_what, additionalHeaders) => {
    const userInfo = { endpointUrl: `${idp.url}/userinfo`, additionalHeaders }
    expect(() => createRig(sockets).oauth2(idp, { userInfo })).toThrow(/expected/)
  })

  it('is not to private addresses unless that is allowed, and never to those of metadata services', async () => {
    const resolver = (host: string) => Promise.resolve(host === 'meta.test' ? ['169.254.169.254'] : ['10.0.0.7'])
    const { oidc } = createRig(sockets, { resolver, deadlineMs: 300 })
    const issuer = (host: string, allowPrivateIP: boolean) =>
      oidc(idp, { issuerUrl: `https://${host}` }, { allowPrivateIP }).authorizationUrl(LEG)
    await expect(issuer('inside.test', false)).rejects.toMatchObject({ detail: 'discovery document: blocked_address' })
    await expect(issuer('meta.test', true)).rejects.toMatchObject({ detail: 'discovery document: blocked_address' })
    await expect(issuer('inside.test', true)).rejects.toMatchObject({ code: 'identity_provider_unavailable' })
  })

  it.each([
    ['inside.test', false, { code: 'config_error', detail: 'token endpoint: blocked_address' }],
    ['inside.test', true, { code: 'identity_provider_unavailable' }],
    ['meta.test', true, { code: 'config_error', detail: 'token endpoint: blocked_address' }],
  ])('is to %s with `allowPrivateIPs: %s` as with `allowPrivateIP`', async (host, allowPrivateIPs, failure) => {
    const resolver = (name: string) => Promise.resolve(name === 'meta.test' ? ['169.254.169.254'] : ['10.0.0.7'])
    const rig = createRig(sockets, { resolver, deadlineMs: 300 })
    const upstream = rig.oauth2(idp, { tokenEndpoint: `https://${host}/token`, allowPrivateIPs })
    await expect(upstream.finish(LEG, came)).rejects.toMatchObject(failure)
  })

  it('is not to loopback by a name that says something else', async () => {
    const { oidc } = createRig(sockets, { resolver: () => Promise.resolve(['127.0.0.1']) })
    await expect(oidc(idp, { issuerUrl: 'https://idp.test' }).authorizationUrl(LEG)).rejects.toMatchObject({
      code: 'config_error',
    })
  })

  it('trusts the roots of caBundleRef and no others, and waits for them', async () => {
    const rig = createRig(sockets)
    const noCa = rig.oidc(idp, {}, { caBundleRef: undefined })
    await expect(noCa.authorizationUrl(LEG)).rejects.toMatchObject({ code: 'identity_provider_unavailable' })
    const later = rig.oidc(idp, {}, { caBundleRef: { name: 'idp', key: 'later' } })
    await expect(later.authorizationUrl(LEG)).rejects.toMatchObject({ code: 'identity_provider_unavailable' })
    rig.secrets.get('idp/later').set(rig.secrets.get('idp/ca').current().reveal())
    expect((await later.authorizationUrl(LEG)).origin).toBe(idp.url)
  })

  it('gives up after its deadline', async () => {
    const silent = await sockets.tcp(() => undefined)
    const upstream = createRig(sockets, { deadlineMs: 200 }).oauth2({ ...idp, url: silent })
    await expect(upstream.finish(LEG, came)).rejects.toMatchObject({ detail: 'token endpoint: timeout' })
  })

  it('sends the access token where it belongs and nowhere else', async () => {
    await login()
    const carrying = idp.asked.filter(({ headers }) => headers.authorization?.includes(ACCESS))
    expect(carrying.map(({ path }) => path)).toEqual(['/userinfo'])
  })
})
