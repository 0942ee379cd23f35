import { Agent, fetch as undiciFetch } from 'undici'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createSockets } from '../../support/sockets.ts'
import { TLS } from '../../support/tls.ts'
import { Browser } from '../../support/authserver/browser.ts'
import { atUpstream, authorizeUrl, makePkce, redeem, register, startRig } from '../../support/authserver/rig.ts'

const sockets = createSockets()
beforeEach(() => {
  const trusting = sockets.closing(new Agent({ connect: { ca: TLS.ca } }))
  vi.stubGlobal('fetch', (url: string | URL, init?: object) => undiciFetch(url, { ...init, dispatcher: trusting }))
})
afterEach(async () => {
  vi.unstubAllGlobals()
  await sockets.closeAll()
})

/** A cookie of this host alone, which no other host and no plain connection can set or see (RFC 6265bis §4.1.3). */
const ATTRIBUTES = /^__Host-[^;]+; Path=\/(; Max-Age=\d+)?; HttpOnly; SameSite=Lax; Secure$/

it('over https, all cookies of a login are Secure and __Host-, and none of another name counts', async () => {
  const rig = await startRig(sockets, { tls: { current: () => TLS.server, onChange: () => () => undefined } })
  expect(rig.issuer).toMatch(/^https:/)
  const redirect_uri = 'https://app.example.com/cb'
  const client = await register(rig, { redirect_uris: [redirect_uri] })
  const pkce = makePkce()
  const browser = new Browser()
  const asked = await browser.get(authorizeUrl(rig, client, pkce, { redirect_uri }))
  const sent = await browser.press(asked, 'continue')
  const jar = browser.cookies.get(new URL(rig.url).host)
  const [[name, secret] = ['', '']] = jar ?? []
  jar?.delete(name)
  jar?.set(name.slice('__Host-'.length), secret)
  const lost = await atUpstream(rig, browser, sent)
  expect(lost.status, 'a cookie that another host could have set').toBe(400)
  jar?.set(name, secret)
  const back = await atUpstream(rig, browser, sent)
  const code = new URL(back.location ?? '').searchParams.get('code') ?? ''
  expect((await redeem(rig, client, code, pkce, { redirect_uri })).status).toBe(200)
  const cookies = [asked, sent, back].flatMap(({ headers }) => headers.getSetCookie())
  expect(cookies.map((cookie) => cookie.replace(/[-=].*/, ''))).toEqual(['__Host', '__Host', '__Host'])
  for (const cookie of cookies) expect(cookie).toMatch(ATTRIBUTES)
})
