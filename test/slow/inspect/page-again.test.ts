import { readFile } from 'node:fs/promises'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openLab, type TestLab } from '../../support/e2e/lab.ts'
import { callTool } from '../../support/lab/proxied.ts'
import { CHROMIUM_START_MS, startChromium } from '../../support/chromium.ts'
import { openPage } from '../../support/inspect/browser.ts'
import { ask, finished, shown } from '../../support/inspect/page-client.ts'

interface Har {
  readonly log: {
    readonly version: string
    readonly entries: readonly {
      readonly startedDateTime: string
      readonly time: number
      readonly request: {
        readonly url: string
        readonly headers: readonly { name: string; value: string }[]
        readonly postData: { text: string }
      }
      readonly response: { readonly status: number; readonly content: { readonly text: string } }
      readonly timings: Readonly<Record<string, number>>
    }[]
  }
}

let lab: TestLab
let browser: Browser
beforeAll(async () => {
  lab = await openLab()
  browser = await startChromium()
}, CHROMIUM_START_MS)
afterAll(async () => {
  await browser?.close()
  await lab?.close()
})

const newest = async () => (await finished(lab.inspectUrl ?? '')).at(-1)

describe('a request that is kept', () => {
  it('is found by what is in its bodies, as they are shown', async () => {
    await callTool(lab, '/unauthenticated', {})
    const { page, troubles, close } = await openPage(browser, lab.inspectUrl ?? '')
    await page.locator('tr.row').first().waitFor()
    const bodies = page.getByRole('combobox', { name: 'Search' })
    await bodies.fill('body:SHOW_request')
    await page.locator('tr.row').first().waitFor()
    await bodies.fill('body:"text without a match"')
    await page.getByText('No request matches the search.').waitFor()
    await bodies.fill('body:show_request')
    await page.locator('tr.row').first().waitFor()
    // A later request is searched as well.
    const before = await page.locator('tr.row').count()
    await callTool(lab, '/unauthenticated', {})
    await page.locator('tr.row').nth(before).waitFor()
    expect(troubles).toEqual([])
    await close()
    for (const text of ['', 'a'.repeat(201)])
      await expect(ask(lab.inspectUrl ?? '', `/api/search?text=${text}`)).rejects.toThrow('400')
  }, 60_000)

  it('is never found by what is masked in it', async () => {
    const token = await lab.token({ sub: 'alice', groups: ['admins'] })
    await callTool(lab, '/token-exchange', { authorization: `Bearer ${token}` })
    const { ids } = await ask<{ ids: string[] }>(lab.inspectUrl ?? '', `/api/search?text=${token.slice(-60, -10)}`)
    expect(ids).toEqual([])
  })

  it('is saved as an HTTP archive, masked as it is shown', async () => {
    const token = await lab.token({ sub: 'alice', groups: ['admins'] })
    await callTool(lab, '/bearer-token', { authorization: `Bearer ${token}` })
    const last = await newest()
    const { page, troubles, close } = await openPage(browser, `${lab.inspectUrl}#/requests/${last?.id}`)
    const request = page.getByRole('region', { name: 'Request', exact: true })
    const waiting = page.waitForEvent('download')
    await request.getByRole('button', { name: 'Save as HAR' }).click()
    const text = await readFile(await (await waiting).path(), 'utf8')
    const { log } = JSON.parse(text) as Har
    expect([log.version, log.entries.length]).toEqual(['1.2', 1])
    const [entry] = log.entries
    expect(entry?.request.url).toMatch(new RegExp(`^${lab.url}/bearer-token`))
    expect(entry?.request.headers.find(({ name }) => name === 'authorization')?.value).toContain('[masked]')
    expect(entry?.request.postData.text).toContain('show_request')
    expect([entry?.response.status, entry?.response.content.text.length]).toEqual([200, expect.any(Number)])
    const { send = -1, wait = -1, receive = -1 } = entry?.timings ?? {}
    expect(send + wait + receive).toBe(entry?.time)
    expect(text).not.toContain(token.slice(0, 40))
    expect(troubles).toEqual([])
    await close()
  }, 60_000)

  it('is sent again, changed, as another user of the lab', async () => {
    const token = await lab.token({ sub: 'alice', groups: ['admins'] })
    await callTool(lab, '/token-exchange', { authorization: `Bearer ${token}` })
    const first = await newest()
    const { page, troubles, close } = await openPage(browser, `${lab.inspectUrl}#/requests/${first?.id}`)
    await page.getByText('Send again', { exact: true }).click()
    const form = page.getByRole('form', { name: 'Send again' })
    expect(await form.getByLabel('Headers').inputValue()).not.toContain('authorization')
    const body = form.locator('textarea[name=body]')
    await body.fill((await body.inputValue()).replace('show_request', 'no_such_tool'))
    await form.getByLabel('Lab user').selectOption('bob')
    await form.getByRole('button', { name: 'Send to token-exchange' }).click()
    const link = form.getByRole('link', { name: 'The request, as the proxy saw it' })
    await link.waitFor()
    const id = (await link.getAttribute('href'))?.split('/').at(-1) ?? ''
    expect(id).not.toBe(first?.id)
    const again = await shown(lab.inspectUrl ?? '', id)
    expect(again.summary).toMatchObject({ route: 'token-exchange', rpcName: 'no_such_tool' })
    expect(again.summary.caller).not.toBe(first?.caller)
    expect(again.requestBody?.text).toContain('no_such_tool')
    expect(troubles).toEqual([])
    await close()
  }, 60_000)
})
