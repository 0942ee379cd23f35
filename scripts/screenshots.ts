import { mkdirSync } from 'node:fs'
import path from 'node:path'
import type { Page } from 'playwright-core'
import { startLab } from '../lab/cli/lab-compose.ts'
import { linkFor } from '../lab/cli/lab-connect.ts'
import { personalKeyOf } from '../lab/index.ts'
import { openLog } from '../src/report/logging.ts'
import { startChromium } from '../test/support/chromium.ts'

// Takes the pictures of docs/inspector.md and docs/connect-your-account.md in a real Chromium, of a lab on free ports: npm
// run screenshots.
const IMAGES = path.join(import.meta.dirname, '../docs/images')
const ANY = { proxy: 0, admin: 0, identity: 0, identityTls: 0, backend: 0, sts: 0, workspace: 0, metadata: 0 }

/** Tries `tool` at a route as a user of the lab, from the page, as a person does. */
async function tryTool(page: Page, route: string, user: string, tool: string): Promise<void> {
  await page.locator('select[name=route]').selectOption(route)
  await page.locator('select[name=user]').selectOption(user)
  await page.getByRole('button', { name: 'Connect', exact: true }).click()
  await page.getByRole('button', { name: tool, exact: true }).click()
  await page.getByRole('button', { name: 'Call', exact: true }).click()
  await page.getByText('Result as JSON').waitFor()
}

/** A picture of the card of a page for people. */
const shoot = (page: Page, name: string): Promise<Buffer> =>
  page.locator('main').screenshot({ path: path.join(IMAGES, `${name}.png`) })

/** From the link of a route to its consent page, as alice. */
async function openLink(page: Page, route: string): Promise<void> {
  await page.goto((await linkFor(`${lab.url}${route}`, await lab.identity.mint({ sub: 'alice' }))) ?? '')
  await press(page, 'alice')
}

const press = (page: Page, name: string): Promise<void> => page.getByRole('button', { name, exact: true }).click()

/** The pages for connecting an account: consent, the form for a key, completion, the list. */
async function shootConnecting(page: Page): Promise<void> {
  await openLink(page, '/connected')
  await shoot(page, 'connect-consent')
  await press(page, 'Continue')
  await press(page, 'alice')
  await shoot(page, 'connect-completion')
  await openLink(page, '/connected-key')
  const field = page.getByLabel('API key')
  await field.fill(personalKeyOf('alice'))
  await shoot(page, 'connect-key')
  await press(page, 'Connect')
  await page.goto(`${lab.url}/connections`)
  await press(page, 'alice')
  await shoot(page, 'connections')
}

const lab = await startLab({ ports: ANY, log: openLog({ level: 'silent' }) })
const browser = await startChromium()
try {
  mkdirSync(IMAGES, { recursive: true })
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 }, colorScheme: 'light' })
  await page.goto(`${lab.inspectUrl}#/try`)
  await page.locator('select[name=route] option').first().waitFor({ state: 'attached' })
  for (const [route, user] of [
    ['header-injection', ''],
    ['bearer-token', 'carol'],
    ['token-exchange', 'bob'],
    ['cloud-sts', 'alice'],
  ] as const)
    await tryTool(page, route, user, 'stream_progress')
  await page.screenshot({ path: path.join(IMAGES, 'inspector-try.png') })
  await fetch(`${lab.url}/cloud-sts`, { method: 'POST', body: '{}' })

  await page.goto(`${lab.inspectUrl}#/requests`)
  await page.locator('tr.row', { hasText: 'missing_token' }).waitFor()
  await page.locator('tr.row', { hasText: 'stream_progress' }).first().locator('a').click()
  await page.getByRole('region', { name: 'Credential', exact: true }).waitFor()
  await page.evaluate(
    `document.querySelector('.request').scrollTop = document.querySelector('[aria-label=Caller]').offsetTop - 60`,
  )
  await page.screenshot({ path: path.join(IMAGES, 'inspector-request.png') })

  await shootConnecting(await browser.newPage({ viewport: { width: 640, height: 800 }, colorScheme: 'light' }))
} finally {
  await browser.close()
  await lab.close()
}
