import { createHash } from 'node:crypto'
import { decodeJwt } from 'jose'
import { afterEach, describe, expect, it } from 'vitest'
import { createSockets } from '../../support/sockets.ts'
import { Browser, textOf } from '../../support/authserver/browser.ts'
import {
  authorizeUrl,
  backFrom,
  getTokens,
  LIMITS,
  makePkce,
  parsedUpstream,
  refresh,
  register,
  startRig,
  type Tokens,
} from '../../support/authserver/rig.ts'
import { startIdp } from '../../support/upstreams/idp.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const pkce = makePkce()
const LOST = 'This sign-in can’t continue here'

/** `sub` of a token, made as authserver.md §4.6 has it. */
function subjectOf(provider: string, subject: string): string {
  const parts = [provider, subject].map((part) => {
    const length = Buffer.alloc(4)
    length.writeUInt32BE(Buffer.byteLength(part))
    return Buffer.concat([length, Buffer.from(part)])
  })
  return createHash('sha256').update(Buffer.concat(parts)).digest('base64url')
}

describe('sub', () => {
  it('names the identity provider and its user, so that users of one name at two providers are two', async () => {
    const rig = await startRig(sockets, { spec: { limits: LIMITS } })
    const client = await register(rig)
    const { sub } = decodeJwt((await getTokens(rig, client)).access_token)
    expect(sub).toBe(subjectOf(rig.idp.url, 'user-1'))
    const other = await startIdp(sockets)
    rig.open({ spec: { ...rig.spec, upstreamProviders: [parsedUpstream(other, {}, 'corp')] } })
    const tokens = await getTokens({ ...rig, idp: other }, client, { more: { prompt: 'consent' } })
    expect(decodeJwt(tokens.access_token).sub).toBe(subjectOf(other.url, 'user-1'))
    const renamed = parsedUpstream(rig.idp, {}, 'renamed')
    rig.open({ spec: { ...rig.spec, upstreamProviders: [renamed] } })
    expect(decodeJwt((await getTokens(rig, client)).access_token).sub).toBe(sub)
  })
})

describe('the record of a login', () => {
  it('is found with its cookie and its state together, and neither is enough', async () => {
    const rig = await startRig(sockets)
    const client = await register(rig)
    const browser = new Browser()
    const sent = await browser.press(await browser.get(authorizeUrl(rig, client, pkce)), 'continue')
    const back = new URL(backFrom(rig, sent))
    const jar = browser.cookies.get(new URL(rig.url).host)
    const [name = '', secret = ''] = [...(jar ?? [])].find(([one]) => one.startsWith('extauth-login-')) ?? []
    jar?.set(name, `${secret.slice(0, -2)}${secret.endsWith('AA') ? 'BA' : 'AA'}`)
    expect(textOf(await browser.get(back.href)), 'a cookie of the same name').toContain(LOST)
    jar?.set(name, secret)
    const [flow = '', token = ''] = (back.searchParams.get('state') ?? '').split('.')
    const other = new URL(back)
    other.searchParams.set('state', `${flow}.${token.slice(0, -2)}${token.endsWith('AA') ? 'BA' : 'AA'}`)
    expect(textOf(await browser.get(other.href)), 'a state of the same login').toContain(LOST)
    expect(rig.idp.count('/token')).toBe(0)
    expect((await browser.get(back.href)).location).toContain('code=')
  })
})

describe('an answer that comes back at the address of another upstream', () => {
  it('aborts the login, and its code is not issued', async () => {
    const second = await startIdp(sockets)
    const rig = await startRig(sockets, {
      resources: (url) => [{ url: `${url}/both`, scopes: [], providers: ['crm'] }],
    })
    const at = (path: string) => ({ redirectUri: `${rig.url}/${path}/callback` })
    const upstreamProviders = [parsedUpstream(rig.idp, at('one'), 'corp'), parsedUpstream(second, at('two'))]
    const server = rig.open({ spec: { ...rig.spec, upstreamProviders } })
    const url = authorizeUrl({ ...rig, server }, await register(rig), pkce, { scope: undefined })
    const browser = new Browser()
    const sent = await browser.press(await browser.get(url), 'continue')
    const back = backFrom(rig, sent).replace('/one/callback', '/two/callback')
    expect(back).toContain('/two/callback')
    const seen = await browser.get(back)
    expect([seen.status, seen.html]).toEqual([502, expect.stringContaining('error=server_error')])
    expect(rig.idp.count('/token') + second.count('/token')).toBe(0)
    expect(rig.log.lines.join('\n')).toContain('the response arrived at the callback of another upstream')
  })
})

describe('claims of an issued token', () => {
  it('is no scope that its resource has not, whatever was asked for', async () => {
    const rig = await startRig(sockets)
    const client = await register(rig, { scope: 'mcp:read admin' })
    const tokens = await getTokens(rig, client, { more: { scope: 'mcp:read admin openid' } })
    expect([tokens.scope, decodeJwt(tokens.access_token)['scope']]).toEqual(['mcp:read', 'mcp:read'])
  })

  it('is nothing of an upstream’s that is ours to say, even where the configuration names it', async () => {
    const rig = await startRig(sockets)
    const forwardClaims = ['scope', 'act', 'cnf', 'may_act', 'tsid', 'department']
    rig.open({ spec: { ...rig.spec, forwardClaims } })
    const foreign = { scope: 'admin', act: { sub: 'x' }, cnf: { jkt: 'x' }, may_act: { sub: 'x' }, tsid: 'x' }
    rig.idp.claims = { ...foreign, department: 'dev' }
    rig.idp.user = { sub: 'user-1', ...foreign }
    const client = await register(rig)
    const first = await getTokens(rig, client)
    const renewed = (await (await refresh(rig, client, first.refresh_token ?? '')).json()) as Tokens
    for (const { access_token: token } of [first, renewed]) {
      const claims = decodeJwt(token)
      expect(claims).toMatchObject({ scope: 'mcp:read', department: 'dev', tsid: expect.stringMatching(/^.{22}$/) })
      for (const name of ['act', 'cnf', 'may_act']) expect(claims).not.toHaveProperty(name)
    }
  })
})

describe('pages of the login', () => {
  it('have a rate per address, callbacks and forms too', async () => {
    const rig = await startRig(sockets, { spec: { limits: { ...LIMITS, authorize: { perSecond: 1, burst: 3 } } } })
    const url = authorizeUrl(rig, await register(rig), pkce)
    const at = [url, `${rig.url}/oauth/callback?state=x`, `${rig.url}/oauth/continue?ticket=x`]
    const before = await Promise.all(at.map((one) => new Browser().get(one)))
    expect(before.map(({ status }) => status)).toEqual([200, 400, 400])
    for (const one of at) {
      const seen = await new Browser().get(one)
      expect([seen.status, seen.headers.get('retry-after')]).toEqual([429, '1'])
      expect(textOf(seen)).toContain('Too many attempts')
    }
    rig.clock.advance(1000)
    expect((await new Browser().get(url)).status).toBe(200)
  })

  it('take forms and no other content, which a page of another site could send without being asked', async () => {
    const rig = await startRig(sockets)
    const browser = new Browser()
    const asked = await browser.get(authorizeUrl(rig, await register(rig), pkce))
    const [, ticket = ''] = /name="ticket" value="([^"]+)"/.exec(asked.html) ?? []
    const cookie = [...(browser.cookies.get(new URL(rig.url).host) ?? [])].map((pair) => pair.join('=')).join('; ')
    const post = (type: string) =>
      fetch(`${rig.url}/oauth/continue`, {
        method: 'POST',
        redirect: 'manual',
        headers: { cookie, origin: rig.url, 'content-type': type },
        body: `decision=continue&ticket=${ticket}`,
      })
    for (const type of ['text/plain', 'application/json', 'multipart/form-data; boundary=x'])
      expect([type, (await post(type)).status]).toEqual([type, 400])
    expect((await post('application/x-www-form-urlencoded; charset=utf-8')).status).toBe(303)
  })
})
