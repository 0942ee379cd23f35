import type { Browser } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { CHROMIUM_START_MS, startChromium } from '../../../support/chromium.ts'
import { createSockets } from '../../../support/sockets.ts'
import { upstreamOf } from '../../../support/authserver/rig.ts'
import {
  ask,
  expectToken,
  LOST,
  press,
  signIn,
  startWorld,
  type World,
} from '../../../support/authserver/chromium/world.ts'

const sockets = createSockets()
let browser: Browser
let world: World
beforeAll(async () => {
  browser = await startChromium()
}, CHROMIUM_START_MS)
afterAll(() => browser.close())
beforeEach(async () => {
  world = await startWorld(sockets, browser)
})
afterEach(async () => {
  await world.close()
  await sockets.closeAll()
})

const heading = (page: Awaited<ReturnType<World['person']>>) => page.locator('h1').innerText()

describe('a login in a real browser', { timeout: 120_000 }, () => {
  it.each([true, false])('goes from the question to the code (script: %s)', async (javaScriptEnabled) => {
    const asking = await ask(world, { client_name: 'My Editor' })
    const page = await world.person({ javaScriptEnabled })
    const complaints: string[] = []
    page.on('console', (message) => {
      if (message.text().includes('Content Security Policy')) complaints.push(message.text())
    })
    await page.goto(asking.url)
    const text = await page.locator('main').innerText()
    const { host } = new URL(world.redirect)
    for (const part of ['My Editor', 'Unverified', host, `${world.rig.url}/mcp`, 'mcp:read', 'corp'])
      expect(text).toContain(part)
    expect(text).not.toContain('mcp:write')
    await press(page, 'Continue')
    const answer = await signIn(page, world.redirect)
    expect([...answer.keys()].toSorted()).toEqual(['code', 'iss', 'state'])
    expect([answer.get('iss'), answer.get('state')]).toEqual([world.rig.issuer, 'state-of-the-client'])
    await expectToken(world, asking, answer)
    expect(complaints).toEqual([])
  })

  it('goes on where the upstream posts its response, which comes without cookies', async () => {
    const more = { additionalAuthorizationParams: { response_mode: 'form_post' } }
    const posting = await startWorld(sockets, browser, { upstreams: (idp) => [upstreamOf(idp, 'corp', more)] })
    const asking = await ask(posting)
    const page = await posting.person()
    await page.goto(asking.url)
    await press(page, 'Continue')
    const answer = await signIn(page, posting.redirect)
    expect(answer.get('state')).toBe('state-of-the-client')
    await expectToken(posting, asking, answer)
    await posting.close()
  })

  it('ends at once with cancel', async () => {
    const asking = await ask(world)
    const page = await world.person()
    await page.goto(asking.url)
    await press(page, 'Cancel')
    await page.waitForURL((url) => url.href.startsWith(world.redirect))
    const answer = new URL(page.url()).searchParams
    expect([answer.get('error'), answer.get('iss'), answer.has('code')]).toEqual([
      'access_denied',
      world.rig.issuer,
      false,
    ])
    expect(world.rig.idp.count('/token')).toBe(0)
    expect(await page.context().cookies()).toEqual([])
  })

  it('shows the user an upstream error, then returns it to the client', async () => {
    const asking = await ask(world, { client_name: 'My Editor' })
    const page = await world.person()
    await page.goto(asking.url)
    await press(page, 'Continue')
    await page.locator('#no').click()
    expect(await heading(page)).toBe('You were not signed in')
    await page.getByRole('link', { name: 'Back to My Editor' }).click()
    await page.waitForURL((url) => url.href.startsWith(world.redirect))
    expect(new URL(page.url()).searchParams.get('error')).toBe('access_denied')
  })

  it('continues from such a page automatically', async () => {
    const asking = await ask(world)
    const page = await world.person({ javaScriptEnabled: false })
    await page.goto(asking.url)
    await press(page, 'Continue')
    await page.locator('#no').click()
    await page.waitForURL((url) => url.href.startsWith(world.redirect))
    expect(new URL(page.url()).searchParams.get('error')).toBe('access_denied')
  })

  it('does not ask again in the same browser session, but in the next one and for more', async () => {
    const asking = await ask(world)
    const page = await world.person()
    await page.goto(asking.url)
    await press(page, 'Continue')
    await signIn(page, world.redirect)
    await page.goto(asking.url)
    expect(page.url()).toContain(world.rig.idp.url)
    await expectToken(world, asking, await signIn(page, world.redirect))
    const more = new URL(asking.url)
    more.searchParams.set('scope', 'mcp:read mcp:write')
    const again = new URL(asking.url)
    again.searchParams.set('prompt', 'consent')
    for (const url of [more, again]) {
      await page.goto(url.href)
      expect(await heading(page)).toContain('Allow')
    }
    // A client on this device can be any program: consent is stored until the browser closes.
    const cookies = await page.context().cookies()
    const lasting = cookies.filter(({ expires }) => expires !== -1)
    const next = await world.person()
    await next.context().addCookies(lasting)
    await next.goto(asking.url)
    expect(await heading(next)).toContain('Allow')
  })

  it('remembers a client on the web for 30 days', async () => {
    const redirect = 'https://client.example/callback'
    const asking = await ask(world, { redirect_uris: [redirect], application_type: 'web' })
    const page = await world.person()
    await page.goto(asking.url)
    await press(page, 'Continue')
    // That address has no server: the browser's request is enough.
    const asksClient = page.waitForRequest((request) => request.url().startsWith(redirect))
    await page.locator('#in').click()
    await asksClient
    const lasting = (await page.context().cookies()).filter(({ expires }) => expires !== -1)
    const days = lasting.map(({ expires }) => Math.round((expires - Date.now() / 1000) / 86_400))
    expect(days).toEqual([30])
    const next = await world.person()
    await next.context().addCookies(lasting)
    await next.goto(asking.url)
    expect(next.url()).toContain(world.rig.idp.url)
  })

  it('can’t be continued in another browser, which learns and spends nothing', async () => {
    const asking = await ask(world)
    const [alice, mallory] = [await world.person(), await world.person()]
    await alice.goto(asking.url)
    await press(alice, 'Continue')
    const back = (await alice.locator('#in').getAttribute('href')) ?? ''
    const response = await mallory.goto(back)
    expect([response?.status(), await heading(mallory)]).toEqual([400, LOST])
    expect(mallory.url()).toBe(back)
    expect(await mallory.content()).not.toContain('Editor')
    expect(world.rig.idp.count('/token')).toBe(0)
    await expectToken(world, asking, await signIn(alice, world.redirect))
  })

  it('is one login through reloads, and the back button starts no second one', async () => {
    const asking = await ask(world)
    const page = await world.person()
    await page.goto(asking.url)
    await page.reload()
    await press(page, 'Continue')
    await page.waitForURL((url) => url.href.startsWith(world.rig.idp.url))
    await page.goBack()
    expect(await heading(page)).toContain('Allow')
    await press(page, 'Continue')
    await page.waitForURL((url) => url.href.startsWith(world.rig.idp.url))
    const back = (await page.locator('#in').getAttribute('href')) ?? ''
    await expectToken(world, asking, await signIn(page, world.redirect))
    const answer = page.url()
    // The callback is valid once, however it is used.
    await page.goto(back)
    expect(await heading(page)).toBe(LOST)
    await page.reload()
    expect(await heading(page)).toBe(LOST)
    expect(world.rig.idp.count('/token')).toBe(1)
    expect(page.url()).not.toBe(answer)
  })

  it('is two logins in two tabs', async () => {
    const [one, two] = [await ask(world, { client_name: 'One' }), await ask(world, { client_name: 'Two' })]
    const first = await world.person()
    const second = await first.context().newPage()
    await first.goto(one.url)
    await second.goto(two.url)
    await press(first, 'Continue')
    await press(second, 'Continue')
    await expectToken(world, two, await signIn(second, world.redirect))
    await expectToken(world, one, await signIn(first, world.redirect))
    const names = (await first.context().cookies()).map(({ name }) => name).filter((name) => name.includes('login'))
    expect(names).toEqual([])
  })
})
