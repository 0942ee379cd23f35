import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { logInAtRoute } from '../../../lab/cli/lab-login.ts'
import { openLab, type TestLab } from '../../support/e2e/lab.ts'
import { callTool } from '../../support/lab/proxied.ts'
import { axeViolations, CHROMIUM_START_MS, startChromium } from '../../support/chromium.ts'
import { openPage } from '../../support/inspect/browser.ts'

const TYPES = [
  ['unauthenticated', 'unauthenticated', undefined],
  ['header-injection', 'headerInjection', 'x-api-key'],
  ['bearer-token', 'bearerToken', 'authorization'],
  ['client-credentials', 'clientCredentials', 'authorization'],
  ['obo', 'obo', 'authorization'],
  ['token-exchange', 'tokenExchange', 'authorization'],
  ['upstream', 'upstreamInject', 'authorization'],
  ['xaa', 'xaa', 'authorization'],
  ['cloud-sts', 'cloudSts', 'authorization'],
] as const

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

const open = (options: Parameters<typeof openPage>[2] = {}) => openPage(browser, lab.inspectUrl ?? '', options)
const aliceAt = async (route: string): Promise<Record<string, string>> => {
  if (route === 'unauthenticated' || route === 'header-injection') return {}
  const token =
    route === 'upstream' || route === 'xaa'
      ? await logInAtRoute(lab.url, `/${route}`, 'alice')
      : await lab.token({ sub: 'alice', groups: ['admins'] })
  return { authorization: `Bearer ${token}` }
}

describe('the list', () => {
  it('shows a request of each type as it comes; it opens, and what was injected is marked and masked', async () => {
    const { page, troubles, close } = await open()
    await page.getByText('No request yet').waitFor()
    for (const [route, type, injected] of TYPES) {
      expect((await callTool(lab, `/${route}`, await aliceAt(route))).status).toBe(200)
      const row = page.locator('tr.row', { hasText: 'show_request' }).filter({ hasText: type }).first()
      await row.locator('.status', { hasText: '200' }).waitFor()
      await row.locator('a[data-row]').click()
      const sent = page.getByRole('region', { name: 'Sent', exact: true })
      await sent.getByRole('rowheader', { name: 'via' }).waitFor()
      if (injected === undefined) continue
      const line = sent.locator('tr', { has: page.getByRole('rowheader', { name: injected, exact: true }) })
      expect(await line.locator('.value').innerText()).toContain('[masked]')
      expect(await line.locator('.mark').innerText()).toMatch(/added|replaced/)
      expect(await line.getAttribute('class')).toMatch(/m-added|m-replaced/)
    }
    const credential = page.getByRole('region', { name: 'Credential', exact: true })
    await credential.getByText('arn:cloud:iam::000000000000:role/lab-admin (by mapping)').waitFor()
    expect(await credential.locator('tr.v-matched').innerText()).toContain('admins')
    expect(await credential.locator('tr.v-not_evaluated').innerText()).toContain('not reached')
    await page.getByText('What was signed (SigV4)').click()
    await page.getByText('x-amz-security-token:[masked]').first().waitFor()
    await page.getByText(/^AWS4-HMAC-SHA256\n/).waitFor()
    for (const part of ['Received', 'Caller', 'Answer', 'Time line', 'Bodies'])
      await page.getByRole('region', { name: part, exact: true }).waitFor()
    expect(troubles).toEqual([])
    await close()
  }, 60_000)

  it('shows the tags of a session by name, and what its policy says', async () => {
    const { page, troubles, close } = await open()
    const token = await lab.token({ sub: 'alice', claims: { team: 'search' } })
    expect((await callTool(lab, '/aws-chained', { authorization: `Bearer ${token}` })).status).toBe(200)
    await page.locator('tr.row', { hasText: 'aws-chained' }).first().locator('a[data-row]').click()
    const credential = page.getByRole('region', { name: 'Credential', exact: true })
    await credential.getByText('arn:cloud:iam::000000000000:role/lab-search (by mapping)').waitFor()
    expect(await credential.innerText()).toMatch(
      /Tag Team\s+shown with --show-claims[^]*Tag User[^]*transitive[^]*External id\s+lab-team/i,
    )
    await credential.getByText('arn:cloud:mcp:::{claims.team}/*').waitFor()
    expect(troubles).toEqual([])
    await close()
  }, 60_000)

  it('opens a request from anywhere on its line, and has its filters after a reload', async () => {
    const { page, troubles, close } = await open()
    expect((await callTool(lab, '/unauthenticated', {})).status).toBe(200)
    const row = page.locator('tr.row', { hasText: 'unauthenticated' }).first()
    await row.locator('.status').click()
    await page.getByRole('region', { name: 'Request', exact: true }).waitFor()
    await page.getByRole('combobox', { name: 'Search' }).fill('no such request')
    await page.getByText('No request matches the search.').waitFor()
    await page.reload()
    await page.getByText('No request matches the search.').waitFor()
    expect(await page.getByRole('combobox', { name: 'Search' }).inputValue()).toBe('no such request')
    expect(troubles).toEqual([])
    await close()
  }, 60_000)

  it('says in one box why a request was refused', async () => {
    const { page, troubles, close } = await open()
    const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
    const claims = { iss: 'https://another-issuer', aud: 'lab', sub: 'alice', exp: 4_000_000_000 }
    const authorization = `Bearer ${part({ alg: 'RS256', kid: 'one' })}.${part(claims)}.${'A'.repeat(342)}`
    expect((await callTool(lab, '/bearer-token', { authorization })).status).toBe(401)
    await page.locator('tr.row', { hasText: 'invalid_token' }).first().locator('a[data-row]').click()
    const why = page.getByRole('region', { name: 'Error', exact: true })
    await why.getByText('https://another-issuer').waitFor()
    expect(await why.innerText()).toMatch(
      /Error: 401 invalid_token[^]*\(iss\) matches no provider[^]*Fix \(.*\)[^]*Get a token[^]*Received[^]*Expected/,
    )
    expect(await why.innerText()).not.toContain('alice')
    expect(troubles).toEqual([])
    await close()
  }, 60_000)

  it('is filtered, paused, cleared, and walked with the keyboard', async () => {
    const { page, troubles, close } = await open()
    await callTool(lab, '/cloud-sts')
    const rows = page.locator('tr.row')
    await rows.filter({ hasText: 'missing_token' }).waitFor()
    const all = await rows.count()
    const search = page.getByRole('combobox', { name: 'Search' })
    for (const term of ['route:cloud-sts', 'status:4xx', 'status:401', 'reason:missing_token']) {
      await search.fill(term)
      await expect.poll(() => rows.count()).toBeLessThan(all)
      await rows.filter({ hasText: 'missing_token' }).waitFor()
      await page.getByRole('button', { name: 'Clear filters' }).click()
      await expect.poll(() => rows.count()).toBe(all)
    }
    await search.fill('method:tools/call tool:show_request')
    await expect.poll(() => rows.count()).toBe(await rows.filter({ hasText: 'show_request' }).count())
    await search.fill('status:401 status:200 route:cloud-sts missing_token')
    await expect.poll(() => rows.count()).toBe(1)
    await search.fill('body:show_request status:200 route:xaa')
    await expect.poll(() => rows.count()).toBeLessThan(all)
    await page.getByRole('button', { name: 'Clear filters' }).click()

    await page.locator('h1').click()
    await page.keyboard.press('/')
    await page.keyboard.type('status:401 missing_token cloud-sts')
    await expect.poll(() => rows.count()).toBe(1)
    await page.getByRole('button', { name: 'Clear filters' }).click()

    await page.getByRole('button', { name: 'Pause' }).click()
    await callTool(lab, '/unauthenticated', {}, 'test_simple_text')
    await page.getByText('waiting').waitFor()
    expect(await rows.filter({ hasText: 'test_simple_text' }).count()).toBe(0)
    await page.getByRole('button', { name: 'Resume' }).click()
    await rows.filter({ hasText: 'test_simple_text' }).first().waitFor()

    await rows.first().locator('a').focus()
    const request = page.getByRole('region', { name: 'Request', exact: true })
    const idOf = (at: number) => rows.nth(at).locator('a').getAttribute('href')
    for (const [key, at] of [
      ['ArrowDown', 1],
      ['End', (await rows.count()) - 1],
      ['Home', 0],
    ] as const) {
      await page.keyboard.press(key)
      await request.locator('code', { hasText: (await idOf(at))?.split('/').at(-1) ?? '' }).waitFor()
    }
    await page.getByRole('region', { name: 'Request', exact: true }).getByText('test_simple_text').first().waitFor()
    await page.keyboard.press('Escape')
    await expect.poll(() => page.getByRole('region', { name: 'Request', exact: true }).count()).toBe(0)

    await page.getByRole('button', { name: 'Clear', exact: true }).click()
    await page.getByText('No request yet').waitFor()
    expect(troubles).toEqual([])
    await close()
  }, 60_000)

  it.each([
    ['was answered', undefined],
    ['was refused before the backend', 'Bearer not-a-token-of-anybody'],
  ])(
    'gives a request that %s as a curl command with a placeholder, which works with a token',
    async (_what, shown) => {
      const { page, troubles, close } = await open()
      const headers = await aliceAt('bearer-token')
      const first = shown === undefined ? headers : { ...headers, authorization: shown }
      const { status } = await callTool(lab, '/bearer-token', first, 'large_result', {
        bytes: 12,
        note: `it's $(false) "`,
      })
      expect(status).toBe(shown === undefined ? 200 : 401)
      await page.locator('a[data-row]').first().click()
      // Method and tool, although nothing was forwarded.
      await page.getByRole('region', { name: 'Request', exact: true }).getByText('large_result').first().waitFor()
      await page.getByRole('button', { name: 'Copy as curl' }).click()
      const command = await page.locator('textarea.command').inputValue()
      expect(command).toContain('-H "Authorization: Bearer $TOKEN"')
      expect(command).not.toContain('[masked]')
      const env = { ...process.env, TOKEN: headers['authorization']?.slice('Bearer '.length) }
      const { stdout } = await promisify(execFile)('sh', ['-c', command], { env, timeout: 20_000 })
      expect(stdout).toContain('0123456789ab')
      expect(troubles).toEqual([])
      await close()
    },
    30_000,
  )
})

describe('every view', () => {
  it.each([
    ['light', { width: 1280, height: 900 }],
    ['dark', { width: 1280, height: 900 }],
    ['light', { width: 360, height: 740 }],
  ] as const)(
    'in %s at %o has nothing that axe-core minds, and nothing beside the screen',
    async (colorScheme, viewport) => {
      await callTool(lab, '/cloud-sts', await aliceAt('cloud-sts'))
      await callTool(lab, '/cloud-sts')
      // axe-core is put in past the policy of the page; what it finds is in the page.
      const { page, troubles, close } = await open({ colorScheme, viewport, bypassCSP: true })
      await page.locator('tr.row').nth(1).waitFor()
      const request = await page.locator('a[data-row]').nth(1).getAttribute('href')
      const places = ['#/requests', request ?? '', '#/try', '#/overview', '#/cache', '#/config']
      for (const place of places) {
        await page.evaluate(`location.hash = ${JSON.stringify(place)}`)
        if (place === request) await page.getByRole('region', { name: 'Bodies' }).waitFor()
        else if (place !== '#/requests') await page.getByRole('heading', { level: 2 }).first().waitFor()
        await page.waitForFunction(`!document.body.innerText.includes('Loading')`)
        expect([place, await axeViolations(page)]).toEqual([place, []])
        const wide = await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth')
        expect([place, wide]).toEqual([place, 0])
      }
      expect(troubles).toEqual([])
      await close()
    },
    60_000,
  )
})
