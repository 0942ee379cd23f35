import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openLab, type TestLab } from '../../support/e2e/lab.ts'
import { callTool } from '../../support/lab/proxied.ts'
import { CHROMIUM_START_MS, startChromium } from '../../support/chromium.ts'
import { openPage } from '../../support/inspect/browser.ts'

let lab: TestLab
let browser: Browser
beforeAll(async () => {
  lab = await openLab()
  browser = await startChromium()
  const authorization = `Bearer ${await lab.token({ sub: 'alice', groups: ['admins'] })}`
  for (const route of ['/cloud-sts', '/token-exchange']) await callTool(lab, route, { authorization })
}, CHROMIUM_START_MS)
afterAll(async () => {
  await browser?.close()
  await lab?.close()
})

describe('the layout of the page', () => {
  it('has one clock: plots name their minutes as the list does, and nothing below', async () => {
    const { page, close } = await openPage(browser, `${lab.inspectUrl}#/requests`)
    // A canvas does not expose its texts.
    await page.evaluate(`{
      const { fillText } = CanvasRenderingContext2D.prototype
      globalThis.written = []
      CanvasRenderingContext2D.prototype.fillText = function (text, ...where) {
        globalThis.written.push(text)
        return fillText.call(this, text, ...where)
      }
    }`)
    await callTool(lab, '/cloud-sts')
    await page.getByRole('link', { name: 'Overview' }).click()
    await page.locator('.uplot[data-top]').waitFor()
    const written = await page.evaluate<string[]>('globalThis.written')
    const minutes = written.filter((text) => !/^\d+$/.test(text))
    expect(minutes.length).toBeGreaterThan(1)
    expect(minutes.filter((text) => !/^\d\d:\d\d$/.test(text))).toEqual([])
    await close()
  }, 60_000)

  it('gives the configuration the whole page', async () => {
    const { page, close } = await openPage(browser, `${lab.inspectUrl}#/config`, {
      viewport: { width: 1600, height: 900 },
    })
    await page.getByText('"secretsDirectory"').waitFor()
    const config = page.locator('.config pre')
    expect(await config.evaluate((pre) => pre.scrollHeight - pre.clientHeight)).toBe(0)
    await close()
  }, 60_000)

  it('keeps the columns of the list in place beside a request, whatever it shows', async () => {
    const { page, close } = await openPage(browser, `${lab.inspectUrl}#/requests`)
    await page.locator('a[data-row]').first().click()
    await page.getByRole('region', { name: 'Received', exact: true }).waitFor()
    const lefts = () =>
      page.locator('.lines thead th:visible').evaluateAll((all) => all.map((th) => th.getBoundingClientRect().left))
    const before = await lefts()
    expect(before.length).toBeGreaterThanOrEqual(5)
    await callTool(lab, '/bearer-token', { authorization: `Bearer ${'z'.repeat(40)}` })
    await page.locator('tr.row', { hasText: 'invalid_token' }).first().waitFor()
    expect(await lefts()).toEqual(before)
    await close()
  }, 60_000)

  it('is red only for headers that held a credential, and gray for the others that were not forwarded', async () => {
    const { page, close } = await openPage(browser, `${lab.inspectUrl}#/requests`)
    await page.locator('tr.row', { hasText: 'token-exchange' }).first().locator('a[data-row]').click()
    const received = page.getByRole('region', { name: 'Received', exact: true })
    const rowOf = (name: string) => received.locator('tr', { has: page.getByRole('rowheader', { name, exact: true }) })
    expect(await rowOf('authorization').getAttribute('class')).toBe('m-credential')
    expect(await rowOf('connection').getAttribute('class')).toBe('m-dropped')
    const background = (name: string) =>
      rowOf(name).evaluate((row) => row.ownerDocument.defaultView?.getComputedStyle(row).backgroundColor)
    expect(await background('connection')).toBe('rgba(0, 0, 0, 0)')
    expect(await background('authorization')).not.toBe('rgba(0, 0, 0, 0)')
    await close()
  }, 60_000)

  it('is usable by keys from the start, breaks no reason, and stretches no button', async () => {
    await callTool(lab, '/bearer-token', { authorization: `Bearer ${'z'.repeat(40)}` })
    const { page, close } = await openPage(browser, `${lab.inspectUrl}#/requests`, {
      viewport: { width: 1000, height: 800 },
    })
    const reason = page.locator('.reason bdi', { hasText: 'invalid_token' }).first()
    await reason.waitFor()
    expect(await reason.evaluate((text) => text.getClientRects().length)).toBe(1)
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    await page.getByRole('region', { name: 'Request', exact: true }).waitFor()
    await page.goto(`${lab.inspectUrl}#/requests/nowhere`)
    const button = page.getByRole('button', { name: 'Close', exact: true })
    await page.getByText('This request is no longer stored.').waitFor()
    expect(await button.evaluate((close) => close.getBoundingClientRect().width)).toBeLessThan(120)
    await close()
  }, 60_000)

  it('breaks no issuer or role into single letters on a narrow screen', async () => {
    const { page, close } = await openPage(browser, `${lab.inspectUrl}#/cache`, {
      viewport: { width: 420, height: 800 },
    })
    const texts = page.locator('.cache td bdi', { hasText: 'role/lab-admin' })
    await texts.first().waitFor()
    const widths = await texts.evaluateAll((all) => all.map((text) => text.getBoundingClientRect().width))
    expect(Math.min(...widths)).toBeGreaterThan(120)
    await close()
  }, 60_000)
})
