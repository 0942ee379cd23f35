import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runProxy } from '../../../src/compose/proxy/process.ts'
import { openLab, recordLog, type TestLab } from '../../support/e2e/lab.ts'
import { callTool } from '../../support/lab/proxied.ts'
import { CHROMIUM_START_MS, startChromium } from '../../support/chromium.ts'
import { openPage } from '../../support/inspect/browser.ts'
import { ask } from '../../support/inspect/page-client.ts'

let lab: TestLab
let browser: Browser
let folder: string
beforeAll(async () => {
  lab = await openLab()
  browser = await startChromium()
  folder = await mkdtemp(path.join(os.tmpdir(), 'inspect-'))
}, CHROMIUM_START_MS)
afterAll(async () => {
  await browser?.close()
  await lab?.close()
  await rm(folder, { recursive: true, force: true })
})

/** A first request without a token is a step of OAuth discovery, not a failure. */
const NOT_A_TOKEN = { authorization: 'Bearer not-a-token' }

describe('the views beside the list', () => {
  it('purge the cache, by group and whole, and show what is left', async () => {
    const fill = async (user: string) => {
      const authorization = `Bearer ${await lab.token({ sub: user, groups: ['admins'] })}`
      for (const route of ['/cloud-sts', '/token-exchange']) await callTool(lab, route, { authorization })
    }
    await fill('alice')
    const { page, troubles, close } = await openPage(browser, `${lab.inspectUrl}#/cache`)
    await page.getByText('2 cached (max').waitFor()
    await page.getByRole('button', { name: 'Purge default/lab-cloud-sts' }).click()
    await page.getByText('1 credential purged.').waitFor()
    await page.getByText('1 cached (max').waitFor()
    await fill('bob')
    await page.getByRole('button', { name: 'Refresh' }).click()
    await page.getByText('3 cached (max').waitFor()
    await page.locator('form[aria-label=Purge] input[name=subject]').fill('alice')
    await page.getByRole('button', { name: 'Purge matching' }).click()
    await page.getByText('1 credential purged.').waitFor()
    await page.locator('form[aria-label=Purge] input[name=subject]').fill('')
    await page.getByRole('button', { name: 'Purge all …' }).click()
    await page.getByRole('alertdialog').getByRole('button', { name: 'Cancel' }).click()
    expect(await ask(lab.inspectUrl ?? '', '/api/cache')).toMatchObject({ entries: 2 })
    await page.getByRole('button', { name: 'Purge all …' }).click()
    await page.getByRole('alertdialog').getByRole('button', { name: 'Purge all' }).click()
    await page.getByText('2 credentials purged.').waitFor()
    expect(await ask(lab.inspectUrl ?? '', '/api/cache')).toMatchObject({ entries: 0 })
    expect(troubles).toEqual([])
    await close()
  }, 60_000)

  it('show readiness, the last failure of each route, one chart of outcomes, and the configuration', async () => {
    await callTool(lab, '/cloud-sts', NOT_A_TOKEN)
    const { page, troubles, close } = await openPage(browser, `${lab.inspectUrl}#/overview`)
    const row = page.locator('tr', { has: page.getByRole('rowheader', { name: 'cloud-sts', exact: true }) })
    await row.getByRole('link', { name: 'invalid_token' }).waitFor()
    const plot = page.getByRole('img', { name: /^Requests in 15 minutes: ok \d+, not connected 0, 4xx 1, 5xx 0$/ })
    await plot.locator('canvas').waitFor()
    const ok = Number(/ok (\d+)/.exec((await plot.getAttribute('aria-label')) ?? '')?.[1])
    // The page is notified and refreshes: of successes too.
    await callTool(lab, '/unauthenticated', {})
    for (let i = 0; i < 3; i++) await callTool(lab, '/cloud-sts', NOT_A_TOKEN)
    await page
      .getByRole('img', { name: `Requests in 15 minutes: ok ${ok + 1}, not connected 0, 4xx 4, 5xx 0` })
      .waitFor()
    await fetch(`${lab.url}/no-such-route`)
    const reasons = page.locator('.reasons tr')
    await reasons.filter({ hasText: 'not_found' }).getByText('1', { exact: true }).waitFor()
    await reasons.filter({ hasText: 'invalid_token' }).getByText('4', { exact: true }).waitFor()
    expect(await page.locator('.uplot').count()).toBe(1)
    await row.getByRole('link', { name: 'invalid_token' }).click()
    await page.getByRole('region', { name: 'Request', exact: true }).getByText('invalid_token').first().waitFor()
    await page.goto(`${lab.inspectUrl}#/config`)
    await page.getByText('"secretsDirectory"').waitFor()
    expect(troubles).toEqual([])
    await close()
  }, 60_000)
})

describe('with an admin token, where others reach the admin listener', () => {
  it('a person logs in with it once, and then sees requests', async () => {
    await writeFile(path.join(folder, 'token'), 'the-admin-token-0123456789')
    await writeFile(
      path.join(folder, 'proxy.yaml'),
      `apiVersion: extauth.dev/v1alpha1
kind: ProxyConfig
metadata: { name: p }
spec:
  listen: { address: '127.0.0.1:0' }
  admin: { address: '0.0.0.0:0', tokenFile: token, inspector: heads }
  auth: { mode: anonymous }
  routes:
    - { name: r, path: /, target: 'http://127.0.0.1:9', externalAuthConfigRef: { name: none } }
---
apiVersion: extauth.dev/v1alpha1
kind: MCPExternalAuthConfig
metadata: { name: none }
spec: { type: unauthenticated }
`,
    )
    const proxy = await runProxy({
      configPaths: [path.join(folder, 'proxy.yaml')],
      env: {},
      log: recordLog(),
      drainGraceMs: 100,
    })
    const url = `http://127.0.0.1:${new URL(proxy.adminUrl).port}/inspect`
    const { page, troubles, close } = await openPage(browser, url, {
      allows: /the server responded with a status of 401/,
    })
    await page.getByLabel('Admin token').fill('wrong')
    await page.getByRole('button', { name: 'Open' }).click()
    await page.getByText('This is not the admin token.').waitFor()
    await page.getByLabel('Admin token').fill('the-admin-token-0123456789')
    await page.getByRole('button', { name: 'Open' }).click()
    await page.getByText('No request yet').waitFor()
    await fetch(`${proxy.url}/x`, { method: 'POST', body: 'a body that heads do not show' })
    await page.locator('tr.row', { hasText: 'backend_unreachable' }).locator('a').click()
    await page.getByText('the inspector shows heads only').waitFor()
    await page.reload()
    await page.locator('tr.row').first().waitFor()
    expect(await page.evaluate('document.cookie')).toBe('')
    expect(troubles).toEqual([])
    await close()
    await proxy.close()
  }, 60_000)
})
