import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createSockets } from '../../support/sockets.ts'
import { Browser, textOf } from '../../support/authserver/browser.ts'
import {
  atUpstream,
  authorizeUrl,
  backFrom,
  getTokens,
  logIn,
  makePkce,
  redeem,
  register,
  startRig,
  type Rig,
  type TestClient,
} from '../../support/authserver/rig.ts'

const sockets = createSockets()
let rig: Rig
let client: TestClient
const pkce = makePkce()
beforeEach(async () => {
  rig = await startRig(sockets)
  client = await register(rig)
})
afterEach(() => sockets.closeAll())

const LOST = 'This sign-in can’t continue here'

/** A browser that has agreed and stands before the upstream. */
async function atTheDoor(browser = new Browser()) {
  const asked = await browser.get(authorizeUrl(rig, client, pkce))
  return { browser, asked, sent: await browser.press(asked, 'continue') }
}

describe('a login is bound to the browser', () => {
  it('so that another one at the callback gets a page, and spends and learns nothing', async () => {
    const { browser, sent } = await atTheDoor()
    const back = backFrom(rig, sent)
    const thief = await new Browser().get(back)
    expect([thief.status, thief.location, textOf(thief)]).toMatchObject([400, undefined, expect.stringContaining(LOST)])
    expect(thief.html).not.toContain(client.id)
    expect(rig.idp.count('/token')).toBe(0)
    expect((await browser.get(back)).location).toContain('code=')
  })

  it('so that a victim who is sent to the callback of a thief is not logged in as the thief', async () => {
    const victim = new Browser()
    await atTheDoor(victim)
    const { sent } = await atTheDoor()
    expect(textOf(await victim.get(backFrom(rig, sent)))).toContain(LOST)
  })

  it('so that a form of another browser, or of another site, is rejected', async () => {
    const { asked } = await atTheDoor()
    expect(textOf(await new Browser().press(asked, 'continue'))).toContain(LOST)
    const crossSite = await fetch(`${rig.url}/oauth/continue`, {
      method: 'POST',
      headers: { origin: 'https://evil.example' },
      body: new URLSearchParams({ decision: 'continue', ticket: 'x' }),
    })
    expect(crossSite.status).toBe(403)
  })

  it('so that its cookie has to be the one that was set, not only one of its name', async () => {
    const browser = new Browser()
    const asked = await browser.get(authorizeUrl(rig, client, pkce))
    const jar = browser.cookies.get(new URL(rig.url).host)
    const [name = '', value = ''] = [...(jar ?? [])][0] ?? []
    const other = value.startsWith('A') ? 'B' : 'A'
    jar?.set(name, other + value.slice(1))
    expect(textOf(await browser.press(asked, 'continue'))).toContain(LOST)
    jar?.set(name, value)
    expect((await browser.press(asked, 'continue')).location).toContain(rig.idp.url)
  })

  it('with a cookie that scripts and other sites don’t get', async () => {
    const asked = await new Browser().get(authorizeUrl(rig, client, pkce))
    expect(asked.headers.getSetCookie()).toEqual([
      expect.stringMatching(
        /^extauth-login-[0-9a-z]{7}[A-Za-z0-9_-]{11}=[A-Za-z0-9_-]{43}; Path=\/; Max-Age=600; HttpOnly; SameSite=Lax$/,
      ),
    ])
  })

  it('and its cookie goes when it is over', async () => {
    const { browser, sent } = await atTheDoor()
    await atUpstream(rig, browser, sent)
    expect(browser.names(rig.url)).toEqual([expect.stringMatching(/^extauth-consents-[0-9a-f]{8}-session$/)])
  })

  it('once: the same callback again is lost', async () => {
    const { browser, sent } = await atTheDoor()
    const back = backFrom(rig, sent)
    await browser.get(back)
    expect(textOf(await browser.get(back))).toContain(LOST)
  })

  it('for ten minutes', async () => {
    const { browser, sent } = await atTheDoor()
    rig.clock.advance(600_000)
    expect(textOf(await atUpstream(rig, browser, sent))).toContain(LOST)
  })

  it('and a page that is older than ten minutes asks to start again', async () => {
    const { browser, asked } = await atTheDoor()
    rig.clock.advance(600_000)
    expect(textOf(await browser.press(asked, 'continue'))).toContain(LOST)
  })

  it('each tab separately, at most eight', async () => {
    const browser = new Browser()
    const pages = []
    for (let i = 0; i < 10; i++) {
      rig.clock.advance(1000)
      pages.push(await browser.get(authorizeUrl(rig, client, pkce)))
    }
    expect(browser.names(rig.url)).toHaveLength(8)
    const ends = await Promise.all(pages.map((page) => browser.press(page, 'continue')))
    expect(ends.map(({ status }) => status)).toEqual([400, 400, ...Array<number>(8).fill(303)])
  })

  it('so that of 50 that come back at once exactly one gets the code', async () => {
    const { browser, sent } = await atTheDoor()
    const back = backFrom(rig, sent)
    const seen = await Promise.all(Array.from({ length: 50 }, () => browser.get(back)))
    expect(seen.filter(({ location }) => location?.includes('code='))).toHaveLength(1)
    expect(seen.filter(({ status }) => status === 400 || status === 429)).toHaveLength(49)
    expect(rig.idp.count('/token')).toBe(1)
  })

  it.each(['', 'x', 'x.y', `${'a'.repeat(18)}.${'b'.repeat(43)}`, '.'.repeat(100)])(
    'state %j is lost',
    async (state) => {
      const seen = await new Browser().get(`${rig.url}/oauth/callback?code=x&state=${state}`)
      expect([seen.status, textOf(seen)]).toMatchObject([400, expect.stringContaining(LOST)])
    },
  )
})

describe('back and reload', () => {
  it('on the consent page work: the form can be sent again', async () => {
    const { browser, asked } = await atTheDoor()
    const again = await browser.press(asked, 'continue')
    expect(again.status).toBe(303)
    expect((await atUpstream(rig, browser, again)).location).toContain('code=')
  })
})

describe('what the client gets', () => {
  it('is access_denied when the user cancels, with issuer and state, and nothing is left', async () => {
    const browser = new Browser()
    const asked = await browser.get(authorizeUrl(rig, client, pkce))
    const cancelled = await browser.press(asked, 'cancel')
    const answer = new URL(cancelled.location ?? '').searchParams
    expect([cancelled.status, Object.fromEntries(answer)]).toMatchObject([
      303,
      { error: 'access_denied', state: 'state-of-the-client', iss: rig.issuer },
    ])
    expect(browser.names(rig.url)).toEqual([])
  })

  it('is a page and access_denied when the upstream refuses', async () => {
    const { browser, sent } = await atTheDoor()
    const seen = await atUpstream(rig, browser, sent, {
      code: '',
      error: 'access_denied',
      error_description: 'No <b>way</b>',
    })
    expect([seen.status, textOf(seen)]).toMatchObject([403, expect.stringContaining('You were not signed in')])
    expect(seen.html).not.toContain('way')
    const back = new URL((/href="([^"]+)"/.exec(seen.html)?.[1] ?? '').replaceAll('&amp;', '&'))
    expect(Object.fromEntries(back.searchParams)).toMatchObject({ error: 'access_denied', iss: rig.issuer })
    expect(seen.html).toContain('http-equiv="refresh"')
  })

  it('is temporarily_unavailable when the upstream is down', async () => {
    const { browser, sent } = await atTheDoor()
    rig.idp.token = { status: 503 }
    const seen = await atUpstream(rig, browser, sent)
    expect([seen.status, seen.html]).toMatchObject([503, expect.stringContaining('error=temporarily_unavailable')])
  })

  it('is server_error when the upstream gives something of no use', async () => {
    const { browser, sent } = await atTheDoor()
    rig.idp.token = { body: 'no' }
    const seen = await atUpstream(rig, browser, sent)
    expect([seen.status, seen.html]).toMatchObject([502, expect.stringContaining('error=server_error')])
  })

  it('is a code issued to no other browser, even with the same session at the upstream', async () => {
    const one = await getTokens(rig, client)
    const two = await getTokens(rig, client)
    expect(one.access_token).not.toBe(two.access_token)
  })
})

describe('a code', () => {
  it('shown by 50 at once is redeemed once', async () => {
    const { answer, pkce: own } = await logIn(rig, client)
    const code = answer.get('code') ?? ''
    const answers = await Promise.all(Array.from({ length: 50 }, () => redeem(rig, client, code, own)))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    expect(answers.filter(({ status }) => status === 400)).toHaveLength(49)
  })
})
