import { decodeJwt } from 'jose'
import { afterEach, describe, expect, it } from 'vitest'
import { subjectOf } from '../../../src/authserver/tokens/subject.ts'
import { Browser } from '../../support/authserver/browser.ts'
import { createSockets } from '../../support/sockets.ts'
import { ACCESS, createKey, type Idp } from '../../support/upstreams/idp.ts'
import {
  atUpstream,
  authorizeUrl,
  getTokens,
  makePkce,
  redeem,
  refresh,
  register,
  type RigOptions,
  startRig,
  upstreamOf,
} from '../../support/authserver/rig.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

/** The user named by a client's token. */
async function subjectAfter(options: RigOptions, idpIs: (idp: Idp) => void = () => undefined) {
  const rig = await startRig(sockets, options)
  idpIs(rig.idp)
  const client = await register(rig)
  const tokens = await getTokens(rig, client)
  return { rig, client, tokens, claims: decodeJwt(tokens.access_token) }
}

/** The client's error when the user cannot be identified. */
async function refusedAfter(options: RigOptions, idpIs: (idp: Idp) => void) {
  const rig = await startRig(sockets, options)
  idpIs(rig.idp)
  const browser = new Browser()
  const asked = await browser.get(authorizeUrl(rig, await register(rig), makePkce()))
  const back = await atUpstream(rig, browser, await browser.press(asked, 'continue'))
  return { status: back.status, log: JSON.stringify(rig.log.lines) }
}

const oauth2 =
  (more: (idp: Idp) => Readonly<Record<string, unknown>>) =>
  (idp: Idp): object[] => [
    {
      name: 'corp',
      type: 'oauth2',
      caBundleRef: { name: 'idp', key: 'ca' },
      oauth2Config: {
        authorizationEndpoint: `${idp.url}/authorize`,
        tokenEndpoint: `${idp.url}/token`,
        clientId: 'us',
        clientSecretRef: { name: 'idp', key: 'secret' },
        ...more(idp),
      },
    },
  ]

describe('subjectClaim', () => {
  const upstreams = (idp: Idp) => [upstreamOf(idp, 'corp', { subjectClaim: 'oid' })]

  it('says who it is instead of sub', async () => {
    const { rig, claims } = await subjectAfter({ upstreams }, (idp) => (idp.claims = { oid: 'object-1' }))
    expect(claims.sub).toBe(subjectOf(rig.idp.url, 'object-1'))
  })

  it('is the same user after a refresh, and user info is still about the sub of the ID token', async () => {
    const { rig, client, tokens, claims } = await subjectAfter({ upstreams }, (idp) => {
      idp.claims = { oid: 'object-1', email: undefined }
    })
    expect(rig.idp.count('/userinfo')).toBe(1)
    rig.clock.advance(3_500_000)
    const response = await refresh(rig, client, tokens.refresh_token ?? '')
    expect(response.status).toBe(200)
    expect(decodeJwt(((await response.json()) as { access_token: string }).access_token).sub).toBe(claims.sub)
  })

  it.each([undefined, '', '  ', 7, ['object-1']])('that is %j rejects the login', async (oid) => {
    const { status, log } = await refusedAfter({ upstreams }, (idp) => (idp.claims = { oid }))
    expect(status).toBe(502)
    expect(log).toContain('ID token: oid is missing')
  })
})

describe('identityFromToken', () => {
  const identityFromToken = { subjectPath: 'user.id', namePath: 'user.name', emailPath: 'user.email' }

  it('is who the answer of the token endpoint says, and user info is not asked', async () => {
    const { rig, claims } = await subjectAfter(
      {
        upstreams: oauth2((idp) => ({ identityFromToken, userInfo: { endpointUrl: `${idp.url}/userinfo` } })),
      },
      (idp) => (idp.tokens = { user: { id: 4711, name: 'User One', email: 'one@example.com' } }),
    )
    expect(claims).toMatchObject({
      sub: subjectOf(`${rig.idp.url}/token`, '4711'),
      name: 'User One',
      email: 'one@example.com',
    })
    expect(rig.idp.count('/userinfo')).toBe(0)
  })

  it('looks into a JWT, and keeps nothing else of the answer', async () => {
    const token = await (await createKey()).sign({ sub: 'in-the-jwt', groups: ['admins'] })
    const upstreams = oauth2(() => ({ identityFromToken: { subjectPath: 'access_token|@upstreamjwt|sub' } }))
    const { rig, claims } = await subjectAfter({ upstreams }, (idp) => (idp.tokens = { access_token: token }))
    expect(claims.sub).toBe(subjectOf(`${rig.idp.url}/token`, 'in-the-jwt'))
    expect(claims).not.toHaveProperty('groups')
  })

  it.each<[string, string, Record<string, unknown>]>([
    ['is not there', 'user.id', {}],
    ['is a list', 'user.id', { user: { id: ['a'] } }],
    ['is empty', 'user.id', { user: { id: '' } }],
    ['is in what is no JWT', 'access_token|@upstreamjwt|sub', { access_token: ACCESS }],
    ['is a number that may be another', 'user.id', { user: { id: 2 ** 60 } }],
  ])('rejects the login when the subject %s', async (_name, subjectPath, tokens) => {
    const upstreams = oauth2(() => ({ identityFromToken: { subjectPath } }))
    const { status } = await refusedAfter({ upstreams }, (idp) => (idp.tokens = tokens))
    expect(status).toBe(502)
  })
})

describe('primaryUpstreamProvider', () => {
  it('is visited first and says who it is; the others come after it', async () => {
    const rig = await startRig(sockets, {
      upstreams: (idp) => [upstreamOf(idp, 'first', { scopes: ['openid', 'crm'] }), upstreamOf(idp, 'identity')],
      spec: { primaryUpstreamProvider: 'identity' },
      resources: (url) => [{ url: `${url}/mcp`, scopes: [], providers: ['identity', 'first'] }],
    })
    const client = await register(rig)
    const [browser, pkce] = [new Browser(), makePkce()]
    rig.idp.claims = { sub: 'of-identity' }
    const sent = await browser.press(await browser.get(authorizeUrl(rig, client, pkce)), 'continue')
    expect(sent.location).not.toContain('crm')
    const second = await atUpstream(rig, browser, sent)
    expect(second.location).toContain('crm')
    rig.idp.claims = { sub: 'of-first' }
    const back = await atUpstream(rig, browser, second)
    const code = new URL(back.location ?? '').searchParams.get('code') ?? ''
    const { access_token: token } = (await (await redeem(rig, client, code, pkce)).json()) as { access_token: string }
    expect(decodeJwt(token).sub).toBe(subjectOf(rig.idp.url, 'of-identity'))
  })

  it('alone is what a login visits that needs no other', async () => {
    const rig = await startRig(sockets, {
      upstreams: (idp) => [upstreamOf(idp, 'first'), upstreamOf(idp, 'identity', { scopes: ['openid', 'crm'] })],
      spec: { primaryUpstreamProvider: 'identity' },
    })
    const browser = new Browser()
    const asked = await browser.get(authorizeUrl(rig, await register(rig), makePkce()))
    const sent = await browser.press(asked, 'continue')
    expect(sent.location).toContain('crm')
    const back = await atUpstream(rig, browser, sent)
    expect(new URL(back.location ?? '').searchParams.get('code')).toBeTruthy()
  })
})
