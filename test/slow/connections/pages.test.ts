import type { Browser, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { personalKeyOf } from '../../../lab/index.ts'
import { look } from '../../support/authserver/chromium/look.ts'
import { createPeople } from '../../support/authserver/chromium/world.ts'
import { axeViolations, CHROMIUM_START_MS, startChromium } from '../../support/chromium.ts'
import { callerOf, MISSING, startRig } from '../../support/connections/rig.ts'
import { openLab, type TestLab } from '../../support/e2e/lab.ts'
import { callTool } from '../../support/lab/proxied.ts'
import { createSockets } from '../../support/sockets.ts'

let lab: TestLab
let browser: Browser
let people: ReturnType<typeof createPeople>
beforeAll(async () => {
  lab = await openLab()
  browser = await startChromium()
  people = createPeople(browser)
}, CHROMIUM_START_MS)
afterEach(async () => {
  await people.close()
  for (const sub of ['alice', 'bob', 'carol'])
    await fetch(
      `${lab.adminUrl}/connections?${new URLSearchParams({ issuer: lab.identity.url, subject: sub }).toString()}`,
      {
        method: 'DELETE',
      },
    )
})
afterAll(async () => {
  await browser.close()
  await lab.close()
})

type Route = '/connected' | '/connected-key'
/** The result of a call, as text. */
async function callAs(route: Route, sub: string): Promise<string> {
  const { body } = await callTool(lab, route, { authorization: `Bearer ${await lab.token({ sub })}` })
  return JSON.stringify(body)
}
/** The link that the client of a caller shows. */
async function linkFor(route: Route, sub = 'alice'): Promise<string> {
  const text = await callAs(route, sub)
  return /http:\S+\/connect\/[\w-]+/.exec(text)?.[0] ?? text
}
const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click()
const heading = (page: Page) => page.locator('h1').innerText()

/** From the link to the consent page. */
async function logIn(page: Page, link: string, user = 'alice'): Promise<void> {
  await page.goto(link)
  expect(new URL(page.url()).origin).toBe(lab.identity.url)
  await press(page, user)
}

describe('a person with a real browser', { timeout: 120_000 }, () => {
  it.each([true, false])(
    'connects an account from the link to the completion page (script: %s)',
    async (javaScriptEnabled) => {
      const page = await people.person({ javaScriptEnabled })
      const complaints: string[] = []
      page.on('console', (message) => complaints.push(message.text()))
      await logIn(page, await linkFor('/connected'))
      expect(await heading(page)).toBe('Connect your account at workspace?')
      const text = await page.locator('main').innerText()
      const { host } = new URL(lab.workspace.url)
      for (const part of ['alice', host, 'connected', new URL(lab.backend.url).host, 'files:read', 'UTC'])
        expect(text).toContain(part)
      await press(page, 'Continue')
      expect(new URL(page.url()).origin).toBe(lab.workspace.url)
      await press(page, 'alice')
      expect(await heading(page)).toBe('Your account at workspace is connected')
      expect(await page.locator('main').innerText()).toContain('alice')
      expect(await callAs('/connected', 'alice')).toContain('"workspaceUser":"alice"')
      expect(await page.context().cookies(lab.url)).toEqual([])
      expect(complaints).toEqual([])
    },
  )

  it.each([true, false])('enters a key, which no page shows again (script: %s)', async (javaScriptEnabled) => {
    const page = await people.person({ javaScriptEnabled })
    await logIn(page, await linkFor('/connected-key', 'carol'), 'carol')
    const field = page.getByLabel('API key')
    expect([await field.getAttribute('type'), await field.getAttribute('autocomplete')]).toEqual(['password', 'off'])
    await press(page, 'Connect')
    // Required: the browser sends nothing.
    expect(await heading(page)).toBe('Connect your account at tracker?')
    await field.fill('wrong')
    await press(page, 'Connect')
    expect(await page.getByRole('alert').innerText()).toContain('This is not a valid API key')
    expect(await field.inputValue()).toBe('')
    await field.fill('lab-key-eve-that-is-no-secret')
    await press(page, 'Connect')
    expect(await page.getByRole('alert').innerText()).toContain('did not accept this API key (status 401)')
    await field.fill(personalKeyOf('carol'))
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Your account at tracker is connected' }).waitFor()
    expect(await page.content()).not.toContain('lab-key-')
    expect(await callAs('/connected-key', 'carol')).toContain('"keyOf":"carol"')
  })

  it.each([true, false])('sees and ends the own connections (script: %s)', async (javaScriptEnabled) => {
    const page = await people.person({ javaScriptEnabled })
    await logIn(page, await linkFor('/connected', 'bob'), 'bob')
    await press(page, 'Continue')
    await press(page, 'bob')
    await page.goto(`${lab.url}/connections`)
    await press(page, 'bob')
    expect(await heading(page)).toBe('Your connected accounts')
    expect(await page.locator('main').innerText()).toMatch(/workspace\s+bob[^]*files:read/)
    await press(page, 'Disconnect workspace')
    expect(await page.getByRole('status').innerText()).toContain('workspace was disconnected')
    expect(await page.locator('main').innerText()).toContain('You have connected no account')
    expect(await callAs('/connected', 'bob')).toContain('/connect/')
  })

  it('opens the link of somebody else: nothing is connected, and the link still works', async () => {
    const link = await linkFor('/connected')
    const [mallory, alice] = [await people.person(), await people.person()]
    await logIn(mallory, link, 'mallory')
    expect(await heading(mallory)).toBe('This link was made for somebody else')
    expect(await mallory.locator('form').count()).toBe(0)
    await logIn(alice, link)
    await press(alice, 'Continue')
    await press(alice, 'alice')
    expect(await heading(alice)).toBe('Your account at workspace is connected')
  })

  it('goes back from the service: the page says that this is over, and the way forward still works', async () => {
    const page = await people.person()
    await logIn(page, await linkFor('/connected'))
    await press(page, 'Continue')
    await page.waitForURL((url) => url.origin === lab.workspace.url)
    await page.goBack()
    expect(await heading(page)).toBe('This can’t continue here')
    expect(await page.locator('main').innerText()).toMatch(/Request \S+/)
    await page.goForward()
    await press(page, 'alice')
    expect(await heading(page)).toBe('Your account at workspace is connected')
  })
})

/** Each page, with a name; `user` must have no connection. */
async function* pages(page: Page, user: string, other: string): AsyncGenerator<string> {
  await logIn(page, await linkFor('/connected', user), user)
  yield 'consent'
  await press(page, 'Continue')
  await press(page, user)
  yield 'completion'
  await logIn(page, await linkFor('/connected-key', user), user)
  yield 'key form'
  await page.getByLabel('API key').fill('wrong')
  await press(page, 'Connect')
  yield 'key form with a problem'
  await page.getByLabel('API key').fill(personalKeyOf(user))
  await press(page, 'Connect')
  yield 'completion with a key'
  await page.goto(`${lab.url}/connections`)
  await press(page, user)
  yield 'connections'
  await press(page, 'Disconnect tracker')
  yield 'connections after a change'
  await page.goto(`${lab.url}/connect/${'A'.repeat(32)}`)
  yield 'failure'
  const link = await linkFor('/connected', other)
  await logIn(page, link, user)
  yield 'failure for another person'
  await logIn(page, link, other)
  await press(page, 'Cancel')
  yield 'canceled'
}

describe('the pages for connecting an account', { timeout: 240_000 }, () => {
  // A caller gets ten links a minute.
  it.each<['light' | 'dark', number, string, string]>([
    ['light', 360, 'alice', 'bob'],
    ['dark', 360, 'bob', 'carol'],
    ['light', 1280, 'carol', 'bob'],
    ['dark', 1280, 'alice', 'carol'],
  ])('can be read in %s, %i pixels wide, and axe-core finds nothing', async (colorScheme, width, user, other) => {
    const seen: string[] = []
    // axe-core is added past the policy of the page.
    const page = await people.person({ colorScheme, viewport: { width, height: 740 }, bypassCSP: true })
    for await (const name of pages(page, user, other)) {
      const { least, background, isTooWide, buttons } = await look(page)
      expect([name, await axeViolations(page)]).toEqual([name, []])
      expect([name, least > 4.5, background < 0.2, isTooWide]).toEqual([name, true, colorScheme === 'dark', false])
      for (const height of buttons) expect([name, height >= 44]).toEqual([name, true])
      expect([name, await page.locator('html').getAttribute('lang'), await page.locator('h1').count()]).toEqual([
        name,
        'en',
        1,
      ])
      seen.push(name)
    }
    expect(seen).toHaveLength(10)
  })

  it('work with the keyboard alone', async () => {
    const page = await people.person()
    await logIn(page, await linkFor('/connected-key'))
    const focused = async () => {
      await page.keyboard.press('Tab')
      return page.evaluate<string>('document.activeElement.name || document.activeElement.textContent')
    }
    expect([await focused(), await focused(), await focused(), await focused()]).toEqual([
      'key',
      `${lab.backend.url}/lab/keys`,
      'decision',
      'decision',
    ])
  })

  it.each([
    ['a script', '<script>document.title="owned"</script><img src=x onerror=alert(1)>'],
    ['a form', '</bdi></form><form action="https://evil.example"><button>Continue'],
    ['an attribute', '" onfocus="alert(1)" autofocus x="'],
    ['a very long word', 'W'.repeat(256)],
  ])('show %s in the name of a person and of an account as text', async (_name, name) => {
    const sockets = createSockets()
    onTestFinished(() => sockets.closeAll())
    const rig = await startRig(sockets)
    for (const idp of [rig.people, rig.service]) idp.claims = { name, email: name, iat: 1, exp: Date.now() }
    const { url } = await rig.links.link(callerOf(rig), 'code', MISSING)
    const page = await people.person({ viewport: { width: 360, height: 640 } })
    const plain = async (buttons: readonly string[]) => {
      expect(await page.locator('bdi').textContent()).toBe(name)
      expect(await page.locator('button').allInnerTexts()).toEqual(buttons)
      expect(await page.locator('script, img, iframe, [onfocus], [onerror]').count()).toBe(0)
      expect((await look(page)).isTooWide).toBe(false)
    }
    await page.goto(url)
    await page.locator('#in').click()
    await plain(['Continue', 'Cancel'])
    await press(page, 'Continue')
    await page.locator('#in').click()
    expect(await heading(page)).toBe('Your account at github is connected')
    await plain([])
  })
})
