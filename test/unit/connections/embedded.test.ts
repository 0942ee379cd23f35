import { afterEach, describe, expect, test } from 'vitest'
import { Browser, textOf } from '../../support/authserver/browser.ts'
import {
  asPerson,
  atService,
  type ConnectionRig,
  embeddedCaller,
  logInWithClient,
  MISSING,
  startRig,
} from '../../support/connections/rig.ts'
import { postForm } from '../../support/authserver/rig.ts'
import { createSockets } from '../../support/sockets.ts'
import { ACCESS, SUBJECT } from '../../support/upstreams/idp.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const start = (): Promise<ConnectionRig> => startRig(sockets, { embedded: true })
const linkOf = async (rig: ConnectionRig, sub = SUBJECT): Promise<string> =>
  (await rig.links.link(embeddedCaller(rig, sub), 'code', MISSING)).url
const tokenOf = async (rig: ConnectionRig, sub = SUBJECT): Promise<string> =>
  (await rig.main.accounts.current(embeddedCaller(rig, sub), 'github', 'access_token')).token.reveal()
const refusals = (rig: ConnectionRig, cause: string) => rig.metrics.value('extauth_connect_refusals_total', cause)

/** Follows redirects within the proxy; stops at a page, and at an identity provider. */
async function follow(rig: ConnectionRig, browser: Browser, url: string) {
  let seen = await browser.get(url)
  for (;;) {
    const next = seen.location === undefined ? undefined : new URL(seen.location, seen.url)
    if (next?.origin !== rig.url) return seen
    seen = await browser.get(next.href)
  }
}

/** Opens the link, logs in at `people` as `sub`, and comes back. */
async function openAs(rig: ConnectionRig, browser: Browser, link: string, sub: string) {
  const back = await asPerson(rig, browser, await follow(rig, browser, link), sub)
  return follow(rig, browser, back.location ?? '')
}

describe('a caller of the embedded server', () => {
  test('whose browser has the login connects without another one', async () => {
    const rig = await start()
    const browser = new Browser()
    await logInWithClient(rig, browser)
    const consent = await follow(rig, browser, await linkOf(rig))
    expect(textOf(consent)).toContain('You are signed in as User One')
    const done = await atService(rig, browser, await browser.press(consent, 'continue'))
    expect(textOf(done)).toContain('Your account at github is connected')
    expect(await tokenOf(rig)).toBe(ACCESS)
    await expect(tokenOf(rig, 'bob')).rejects.toMatchObject({ code: 'not_connected' })
  })

  test('whose browser has no login logs in first', async () => {
    const rig = await start()
    const browser = new Browser()
    const sent = await follow(rig, browser, await linkOf(rig))
    const there = new URL(sent.location ?? '')
    expect(there.origin).toBe(rig.people.url)
    expect(there.searchParams.get('redirect_uri')).toBe(`${rig.url}/mcp/oauth/callback`)
    const back = await asPerson(rig, browser, sent)
    const consent = await follow(rig, browser, back.location ?? '')
    await atService(rig, browser, await browser.press(consent, 'continue'))
    expect(await tokenOf(rig)).toBe(ACCESS)
    expect(browser.names(rig.url)).toEqual([])
  })

  test('is not Bob: neither by his login in the browser nor by a new one', async () => {
    const rig = await start()
    const browser = new Browser()
    await logInWithClient(rig, browser, 'bob')
    const link = await linkOf(rig)
    const sent = await follow(rig, browser, link)
    // His login is of another person, so the browser has to log in.
    expect(new URL(sent.location ?? '').origin).toBe(rig.people.url)
    const refused = await openAs(rig, browser, link, 'bob')
    expect([refused.status, textOf(refused)]).toEqual([403, expect.stringContaining('made for somebody else')])
    expect(refusals(rig, 'other_person')).toBe(1)
    // Alice can use the same browser, and the same link.
    expect(textOf(await openAs(rig, browser, link, SUBJECT))).toContain('Connect your account at github?')
  })

  test('logs in again after the session was revoked, and after eight hours', async () => {
    const rig = await start()
    const browser = new Browser()
    const { client, tokens } = await logInWithClient(rig, browser)
    const ended = await postForm(`${rig.url}/oauth/revoke`, {
      client_id: client.id,
      token: tokens.refresh_token ?? '',
    })
    expect(ended.status).toBe(200)
    const sent = await follow(rig, browser, await linkOf(rig))
    expect(new URL(sent.location ?? '').origin).toBe(rig.people.url)

    await logInWithClient(rig, browser)
    rig.clock.advance(8 * 3_600_000 - 1000)
    expect(textOf(await follow(rig, browser, await linkOf(rig)))).toContain('You are signed in as')
    rig.clock.advance(1000)
    const late = await follow(rig, browser, await linkOf(rig))
    expect(new URL(late.location ?? '').origin).toBe(rig.people.url)
  })

  test('sees the own connections with the same login', async () => {
    const rig = await start()
    const browser = new Browser()
    await logInWithClient(rig, browser)
    const consent = await follow(rig, browser, await linkOf(rig))
    await atService(rig, browser, await browser.press(consent, 'continue'))
    const page = await follow(rig, browser, `${rig.url}/connections`)
    expect(textOf(page)).toContain('You are signed in as User One')
    expect(textOf(page)).toContain('Disconnect github')
  })
})

describe('a proof of a login', () => {
  test('is for one browser and one link', async () => {
    const rig = await start()
    const [alice, mallory] = [new Browser(), new Browser()]
    await logInWithClient(rig, alice)
    const link = await linkOf(rig)
    // Mallory starts the login, and sends Alice where her browser proves who she is.
    const { location = '' } = await mallory.get(link)
    const proof = await alice.get(location)
    expect((await alice.get(proof.location ?? '')).status).toBe(400)
    expect(refusals(rig, 'other_browser')).toBe(1)

    // A proof for one state is none for another.
    const own = await alice.get(await linkOf(rig))
    const there = await alice.get(own.location ?? '')
    const second = new URL((await alice.get((await alice.get(await linkOf(rig))).location ?? '')).location ?? '')
    const mixed = new URL(there.location ?? '')
    mixed.searchParams.set('code', second.searchParams.get('code') ?? '')
    expect((await alice.get(mixed.href)).status).toBe(502)
  })

  test('is refused when it is made up, and when the person declines', async () => {
    const rig = await start()
    const browser = new Browser()
    const { location = '' } = await browser.get(await linkOf(rig))
    expect((await browser.get(`${location}x`)).status).toBe(400)
    expect((await browser.get(`${rig.url}/mcp/oauth/continue?person=AAAA`)).status).toBe(400)
    const sent = await browser.get(location)
    const state = new URL(sent.location ?? '').searchParams.get('state') ?? ''
    const callback = `${rig.url}/mcp/oauth/callback?${new URLSearchParams({ state, error: 'access_denied', iss: rig.people.url }).toString()}`
    const page = await follow(rig, browser, callback)
    expect(textOf(page)).toContain('Access was not allowed')
    expect(refusals(rig, 'canceled')).toBe(1)
    await expect(tokenOf(rig)).rejects.toMatchObject({ code: 'not_connected' })
  })
})
