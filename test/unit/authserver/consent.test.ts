import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createSockets } from '../../support/sockets.ts'
import { Browser, textOf } from '../../support/authserver/browser.ts'
import {
  atUpstream,
  authorizeUrl,
  backFrom,
  LIMITS,
  logIn,
  makePkce,
  register,
  startRig,
  type Rig,
  type TestClient,
} from '../../support/authserver/rig.ts'

const sockets = createSockets()
let rig: Rig
let client: TestClient
const pkce = makePkce()
const WEB = 'https://app.example.com/cb'
beforeEach(async () => {
  rig = await startRig(sockets, { spec: { limits: LIMITS } })
  client = await register(rig, { redirect_uris: [WEB], client_name: 'Web App' })
})
afterEach(() => sockets.closeAll())

const ask = (browser: Browser, more: Readonly<Record<string, string>> = {}, who = client) =>
  browser.get(authorizeUrl(rig, who, pkce, { redirect_uri: WEB, ...more }))

/** A browser that has agreed once. */
async function agreed(more: Readonly<Record<string, string>> = {}): Promise<Browser> {
  const { browser } = await logIn(rig, client, { more: { redirect_uri: WEB, ...more } })
  return browser
}

describe('the consent page', () => {
  it('says who asks, for what, where it goes and what follows, before an upstream is visited', async () => {
    const seen = await ask(new Browser(), { scope: 'mcp:read mcp:write' })
    const text = textOf(seen)
    for (const part of [
      'Web App',
      'Unverified',
      'app.example.com',
      `${rig.url}/mcp`,
      'mcp:read',
      'mcp:write',
      'corp',
      new URL(rig.idp.url).host,
    ])
      expect(text).toContain(part)
    expect(rig.idp.asked).toEqual([])
  })

  it('may not be framed, keeps nothing, runs no script and needs none', async () => {
    const { headers, html } = await ask(new Browser())
    expect(headers.get('content-security-policy')).toMatch(
      /^default-src 'none'; style-src 'sha256-[A-Za-z0-9+/=]+'; base-uri 'none'; frame-ancestors 'none'$/,
    )
    expect(headers.get('x-frame-options')).toBe('DENY')
    expect(headers.get('cache-control')).toBe('no-store')
    expect(headers.get('referrer-policy')).toBe('same-origin')
    expect(html).not.toMatch(/<script|\son[a-z]+=|javascript:/i)
  })

  it('is for phones, dark mode and screen readers', async () => {
    const { html } = await ask(new Browser())
    expect(html).toMatch(/<html lang="en">/)
    expect(html).toMatch(/<meta name="viewport" content="width=device-width, initial-scale=1" \/>/)
    expect(html).toContain('prefers-color-scheme:dark')
    expect(html.match(/<h1>/g)).toHaveLength(1)
    expect(html).toContain('<main>')
    expect(html).toMatch(/<button class="primary" name="decision" value="continue">Continue<\/button>/)
  })

  const hostile = [
    '<script>alert(1)</script>',
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    '</bdi></h1><form action="https://evil.example">',
    '&lt;b&gt;',
    '\u202Eemos\u202C ppA',
    'Vertrauens\u200Bwürdig',
    'A'.repeat(256),
    '🏦 Bank',
  ]
  it.each(hostile)('shows the name %j as text', async (name) => {
    const who = await register(rig, { redirect_uris: [WEB], client_name: name })
    const seen = await ask(new Browser(), {}, who)
    expect(seen.html).not.toMatch(/<script|<img|<form action="https|[\u202A-\u202E\u200B]/)
    const visible = name.replace(/[\u202A-\u202E\u200B]/g, '\uFFFD')
    const text = textOf(seen)
    const heading = visible.length > 60 ? `${visible.slice(0, 60)}…` : visible
    expect(text).toContain(`Allow ${heading} to use`.replace(/\s+/g, ' '))
    expect(text).toContain(`Application ${visible} Unverified`.replace(/\s+/g, ' '))
  })

  it('shows three marks on a letter, and none on what is before the name', async () => {
    const who = await register(rig, { redirect_uris: [WEB], client_name: `\u0301Ba\u0301\u0323\u0302\u0303\u0304nk` })
    expect(textOf(await ask(new Browser(), {}, who))).toContain('Allow \u25CC\u0301Ba\u0301\u0323\u0302\uFFFDnk to use')
  })

  it('says that a loopback or private-use redirect stays on this device', async () => {
    const app = await register(rig, { redirect_uris: ['http://localhost:3334/cb', 'cursor://x/cb'] })
    const loopback = await ask(new Browser(), { redirect_uri: 'http://localhost:3334/cb' }, app)
    expect(textOf(loopback)).toContain('this device a program that listens at localhost:3334')
    const editor = await ask(new Browser(), { redirect_uri: 'cursor://x/cb' }, app)
    expect(textOf(editor)).toContain('this device the program that opens cursor: links')
  })
})

describe('consent', () => {
  it('is stored for 30 days in this browser', async () => {
    const browser = await agreed()
    rig.clock.advance(29 * 86_400_000)
    const again = await ask(browser)
    expect([again.status, again.location]).toMatchObject([303, expect.stringContaining(rig.idp.url)])
    expect((await atUpstream(rig, browser, again)).location).toContain('code=')
    rig.clock.advance(31 * 86_400_000)
    expect((await ask(browser)).status).toBe(200)
  })

  it('does not apply to another browser, scope, resource, redirect or client', async () => {
    const browser = await agreed()
    expect((await ask(new Browser())).status).toBe(200)
    expect((await ask(browser, { scope: 'mcp:read mcp:write' })).status).toBe(200)
    const twoDoors = await register(rig, { redirect_uris: [WEB, `${WEB}/2`] })
    await logIn(rig, twoDoors, { browser, more: { redirect_uri: WEB } })
    expect((await ask(browser, {}, twoDoors)).status).toBe(303)
    expect((await ask(browser, { redirect_uri: `${WEB}/2` }, twoDoors)).status).toBe(200)
    const other = await register(rig, { redirect_uris: [WEB], client_name: 'Web App' })
    expect((await ask(browser, {}, other)).status).toBe(200)
  })

  it('is asked for again by prompt=consent, unless that goes with offline_access', async () => {
    const browser = await agreed({ scope: 'mcp:read offline_access' })
    expect((await ask(browser, { scope: 'mcp:read offline_access', prompt: 'consent' })).status).toBe(303)
    const plain = await agreed()
    expect((await ask(plain, { prompt: 'consent' })).status).toBe(200)
  })

  it('lets prompt=none say that a login is missing', async () => {
    const silent = await ask(await agreed(), { prompt: 'none' })
    expect(new URL(silent.location ?? '').searchParams.get('error')).toBe('login_required')
  })

  it('is stored in a cookie that reveals nothing and can’t be forged', async () => {
    const browser = await agreed()
    const jar = browser.cookies.get(new URL(rig.url).host) ?? new Map<string, string>()
    const [[name, value] = ['', '']] = jar
    expect(name).toMatch(/^extauth-consents-[0-9a-f]{8}$/)
    expect(Buffer.from(value, 'base64url').toString('latin1')).not.toMatch(/mcp|app\.example|user/)
    const changed = `${value.slice(0, -2)}AA`
    for (const wrong of [changed, 'x', '', Buffer.alloc(100).toString('base64url')]) {
      jar.set(name, wrong)
      expect((await ask(browser)).status).toBe(200)
    }
  })

  it('ends with the browser’s session for programs on this device', async () => {
    const app = await register(rig)
    const browser = new Browser()
    const asked = await browser.get(authorizeUrl(rig, app, pkce))
    const back = await atUpstream(rig, browser, await browser.press(asked, 'continue'))
    const cookie = back.headers.getSetCookie().find((line) => line.includes('-session='))
    expect(cookie).not.toContain('Max-Age')
    const again = await browser.get(authorizeUrl(rig, app, pkce, { redirect_uri: 'http://127.0.0.1:999/callback' }))
    expect(again.status).toBe(303)
  })

  it('is asked for again, before the code, when another user logs in', async () => {
    const browser = await agreed()
    const sent = await ask(browser)
    rig.idp.claims = { sub: 'user-2', name: 'User Two' }
    rig.idp.user = { sub: 'user-2' }
    const asked = await atUpstream(rig, browser, sent)
    expect([asked.status, textOf(asked)]).toMatchObject([200, expect.stringContaining('You are signed in as User Two')])
    const done = await browser.press(asked, 'continue')
    expect(new URL(done.location ?? '').searchParams.get('code')).toMatch(/.{43}/)
    // The form is valid once, and only in this browser.
    expect((await browser.press(asked, 'continue')).status).toBe(400)
  })

  it('that another user refuses leaves nothing', async () => {
    const browser = await agreed()
    const sent = await ask(browser)
    rig.idp.claims = { sub: 'user-2' }
    rig.idp.user = { sub: 'user-2' }
    const asked = await atUpstream(rig, browser, sent)
    expect((await new Browser().press(asked, 'continue')).status).toBe(400)
    const done = await browser.press(asked, 'cancel')
    expect(new URL(done.location ?? '').searchParams.get('error')).toBe('access_denied')
    expect((await browser.press(asked, 'continue')).status).toBe(400)
  })

  it('of forty clients fits into one cookie', async () => {
    const browser = new Browser()
    for (let i = 0; i < 45; i++) {
      const who = await register(rig, { redirect_uris: [WEB] })
      const { answer } = await logIn(rig, who, { browser, more: { redirect_uri: WEB } })
      expect(answer.get('code')).not.toBeNull()
    }
    const [value = ''] = [...(browser.cookies.get(new URL(rig.url).host)?.values() ?? [])]
    expect(value.length).toBeLessThan(4000)
  })
})

describe('a login whose callback is on another origin than the authorization endpoint', () => {
  it('goes on there, where the page and the cookie are', async () => {
    const elsewhere = await startRig(sockets, {
      resources: (url) => [
        { url: `${url.replace('127.0.0.1', 'localhost')}/mcp`, scopes: ['mcp:read'], providers: [] },
      ],
    })
    const app = await register(elsewhere)
    const browser = new Browser()
    const handed = await browser.get(authorizeUrl(elsewhere, app, pkce))
    expect([handed.status, handed.location]).toMatchObject([
      303,
      expect.stringMatching(/^http:\/\/localhost:\d+\/mcp\/oauth\/continue\?ticket=/),
    ])
    expect(handed.headers.getSetCookie()).toEqual([])
    const asked = await browser.get(handed.location ?? '')
    const sent = await browser.press(asked, 'continue')
    const back = await browser.get(backFrom(elsewhere, sent))
    expect(new URL(back.location ?? '').searchParams.get('code')).toMatch(/.{43}/)
    // The way over is no form, and the form is no way over.
    const ticket = new URL(handed.location ?? '').searchParams.get('ticket') ?? ''
    const form = {
      ...asked,
      html: asked.html.replace(/name="ticket" value="[^"]+"/, `name="ticket" value="${ticket}"`),
    }
    expect((await browser.press(form, 'continue')).status).toBe(400)
  })
})
