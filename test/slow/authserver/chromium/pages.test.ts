import type { Browser } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { CHROMIUM_START_MS, startChromium } from '../../../support/chromium.ts'
import { createSockets } from '../../../support/sockets.ts'
import { look } from '../../../support/authserver/chromium/look.ts'
import { ask, startWorld, type World } from '../../../support/authserver/chromium/world.ts'

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

describe('the pages in a real browser', { timeout: 120_000 }, () => {
  it.each([
    ['a script', '<script>document.title="owned"</script><img src=x onerror=alert(1)>'],
    ['an entity', '&lt;b&gt;&#x41;&amp;'],
    ['an attribute', '" onfocus="alert(1)" autofocus x="'],
    ['a style', '</style><style>*{display:none}'],
    ['a form', '</bdi></form><form action="https://evil.example"><button>Continue'],
    ['a comment', '<!-- '],
    ['a name that is turned around', '\u202Eetah rof\u202C Editor'],
    ['a name of nothing', '\u200B\u2060\uFEFF'],
    ['a very long word', 'x'.repeat(256)],
  ])('show %s in a client’s name as text', async (_name, name) => {
    const page = await world.person({ viewport: { width: 360, height: 640 } })
    const dialogs: string[] = []
    page.on('dialog', (dialog) => {
      dialogs.push(dialog.message())
      void dialog.dismiss()
    })
    await page.goto((await ask(world, { client_name: name })).url)
    const shown = (await page.locator('h1').textContent()) ?? ''
    const invisible = /[\p{Cf}]/gu
    const visible = name.replace(invisible, '\u{FFFD}')
    expect(shown).toContain(visible.slice(0, 60))
    expect(await page.locator('dd').first().textContent()).toContain(visible)
    expect(shown).not.toMatch(invisible)
    expect(await page.title()).toBe('Allow access?')
    expect(await page.locator('form').count()).toBe(1)
    expect(await page.locator('button').allInnerTexts()).toEqual(['Continue', 'Cancel'])
    expect(await page.locator('script, img, iframe, [onfocus], [onerror]').count()).toBe(0)
    expect((await look(page)).isTooWide).toBe(false)
    expect(dialogs).toEqual([])
  })

  it.each([
    ['of stacked marks', `Bank${'\u0301'.repeat(126)}x${'\u0323'.repeat(125)}`],
    ['that begins with marks', '\u0301'.repeat(256)],
    ['of enclosing marks', 'a\u20E0'.repeat(128)],
    ['of the widest sign', '\uFDFD'.repeat(256)],
    ['of the longest word', 'W'.repeat(256)],
    ['of many lines', 'ab '.repeat(85)],
  ])('let a name %s neither cover what is said of it nor push the buttons away', async (_name, name) => {
    const page = await world.person({ viewport: { width: 360, height: 640 } })
    const said = page.locator('dd small').first()
    const redirects = { redirect_uris: [`https://${'long-host.'.repeat(24)}example.com/cb`] }
    await page.goto((await ask(world, { ...redirects, client_name: 'Plain' })).url)
    const plain = await said.screenshot()
    await page.goto((await ask(world, { ...redirects, client_name: name })).url)
    expect((await said.screenshot()).equals(plain)).toBe(true)
    expect((await look(page)).isTooWide).toBe(false)
    await page.evaluate('scrollTo(0, 0)')
    const bottom = (box: { y: number; height: number } | null) => (box === null ? Infinity : box.y + box.height)
    const form = await page.locator('form').boundingBox()
    expect(bottom(form)).toBeLessThanOrEqual(640)
    expect(bottom(await said.boundingBox())).toBeLessThanOrEqual(form?.y ?? 0)
  })

  it.each<['light' | 'dark', number]>([
    ['light', 360],
    ['dark', 360],
    ['light', 1280],
    ['dark', 1280],
  ])('can be read in %s, %i pixels wide', async (colorScheme, width) => {
    const page = await world.person({ colorScheme, viewport: { width, height: 740 } })
    await page.goto((await ask(world, { client_name: 'Visual Studio Code' })).url)
    const seen = await look(page)
    expect(seen.least).toBeGreaterThan(4.5)
    expect(seen.background < 0.2).toBe(colorScheme === 'dark')
    expect(seen.isTooWide).toBe(false)
    for (const height of seen.buttons) expect(height).toBeGreaterThanOrEqual(44)
    // Something was drawn: a page of one color is a few kilobytes.
    expect((await page.screenshot()).length).toBeGreaterThan(8000)
    await page.goto(`${world.rig.url}/oauth/callback?state=none`)
    expect((await look(page)).least).toBeGreaterThan(4.5)
  })

  it('work with the keyboard and say what they are to a screen reader', async () => {
    const page = await world.person()
    await page.goto((await ask(world)).url)
    const focused = async () => {
      await page.keyboard.press('Tab')
      return page.evaluate<string>('document.activeElement.textContent')
    }
    expect([await focused(), await focused()]).toEqual(['Continue', 'Cancel'])
    const outline = await page.evaluate<string>('getComputedStyle(document.activeElement).outlineStyle')
    expect(outline).not.toBe('none')
    const structure = await page.locator('main').ariaSnapshot()
    expect(structure).toContain('heading "Allow Test Client to use this service as you?" [level=1]')
    expect(structure).toContain('button "Continue"')
    expect(await page.locator('html').getAttribute('lang')).toBe('en')
  })

  it('are shown in no frame', async () => {
    const { url } = await ask(world)
    const framing = await sockets.http((_request, response) => {
      response.writeHead(200, { 'content-type': 'text/html' })
      response.end(`<!doctype html><iframe src="${url.replaceAll('&', '&amp;')}"></iframe>`)
    })
    const page = await world.person()
    const refused = page.waitForEvent('console', { predicate: (message) => message.text().includes('frame-ancestors') })
    await page.goto(framing)
    await refused
    expect(await page.frames()[1]?.locator('form').count()).toBe(0)
  })

  it('take no form that another site sends', async () => {
    const asking = await ask(world)
    const page = await world.person()
    await page.goto(asking.url)
    const ticket = await page.locator('input[name=ticket]').getAttribute('value')
    const action = new URL((await page.locator('form').getAttribute('action')) ?? '', page.url()).href
    const evil = await sockets.http((_request, response) => {
      response.writeHead(200, { 'content-type': 'text/html' })
      response.end(
        `<!doctype html><form method="post" action="${action}"><input name="ticket" value="${ticket}"><input name="decision" value="continue"><button>Win</button></form>`,
      )
    })
    // Another site: localhost is not 127.0.0.1.
    await page.goto(evil.replace('127.0.0.1', 'localhost'))
    await page.getByRole('button', { name: 'Win' }).click()
    await page.waitForLoadState()
    expect(page.url()).not.toContain(world.rig.idp.url)
  })
})
