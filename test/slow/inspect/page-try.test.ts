import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { connectThrough } from '../../../lab/cli/lab-pages.ts'
import { openLab, type TestLab } from '../../support/e2e/lab.ts'
import { CHROMIUM_START_MS, startChromium } from '../../support/chromium.ts'
import { openPage } from '../../support/inspect/browser.ts'
import { ask, finished } from '../../support/inspect/page-client.ts'

const ERAS = ['2026-07-28', '2025-11-25']

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

const openTry = async () => {
  const opened = await openPage(browser, `${lab.inspectUrl}#/try`)
  const { page } = opened
  await page.locator('select[name=route] option').first().waitFor({ state: 'attached' })
  const connect = async (route: string, era: string, who: { user?: string; token?: string } = {}) => {
    await page.locator('select[name=route]').selectOption(route)
    await page.locator('select[name=revision]').selectOption(era)
    await page.locator('select[name=user]').selectOption(who.user ?? '')
    await page.locator('input[name=token]').fill(who.token ?? '')
    await page.getByRole('button', { name: 'Connect', exact: true }).click()
  }
  const choose = async (name: string) => {
    await page.getByRole('button', { name, exact: true }).click()
    await page.getByRole('heading', { name, exact: true }).waitFor()
  }
  const outcome = page.getByRole('region', { name: 'Outcome' })
  return { ...opened, connect, choose, outcome }
}

describe('a try from the page', () => {
  it('calls a tool on every route of the lab, in both protocol versions, and the request is in the list', async () => {
    const { page, troubles, close, connect, choose, outcome } = await openTry()
    const { routes } = await ask<{ routes: { name: string }[] }>(lab.inspectUrl ?? '', '/api/overview')
    expect(routes).toHaveLength(15)
    const usable = routes.filter(({ name }) => !name.startsWith('connected'))
    for (const [at, { name }] of usable.entries()) {
      await connect(name, ERAS[at % ERAS.length] ?? '', { user: 'alice' })
      await page.getByText('Connected to extauth-lab').waitFor()
      await choose('show_request')
      await page.getByRole('button', { name: 'Call', exact: true }).click()
      await outcome.getByText(`POST /${name}/mcp`).first().waitFor()
      const href = await outcome.getByRole('link').getAttribute('href')
      const id = href?.split('/').at(-1)
      const request = (await finished(lab.inspectUrl ?? '')).find((one) => one.id === id)
      expect([name, request?.rpcName, request?.status]).toEqual([name, 'show_request', 200])
    }
    expect(troubles).toEqual([])
    await close()
  }, 90_000)

  it('as each user of a route with rules lists what this user may call, and the request shows which rule decided', async () => {
    const { page, troubles, close, connect, choose, outcome } = await openTry()
    const tools = page.getByRole('navigation', { name: 'What the server offers' })
    const offered = async () =>
      (await tools.getByRole('button').allInnerTexts()).filter((name) => name.endsWith('_note'))
    for (const [user, expected] of [
      ['carol', ['read_note']],
      ['bob', ['read_note', 'write_note']],
      ['alice', ['read_note', 'write_note', 'delete_note']],
    ] as const) {
      for (const era of ERAS) {
        await connect('rules', era, { user })
        await page.getByText('Connected to extauth-lab').waitFor()
        expect([user, era, await offered()]).toEqual([user, era, expected])
        await choose('read_note')
        await page.getByRole('button', { name: 'Call', exact: true }).click()
        await outcome.getByText('Rules decide which tools').first().waitFor()
      }
    }
    await outcome.getByRole('link').click()
    const rules = page.getByRole('region', { name: 'Authorization' })
    await rules.getByText('allowed by the rule readers').waitFor()
    expect(await rules.getByRole('row').allInnerTexts()).toEqual([
      expect.stringMatching(/Rule\s+Effect\s+Verdict/i),
      expect.stringMatching(/readers\s+allow\s+matched/),
      expect.stringMatching(/writers\s+allow\s+not reached/),
      expect.stringMatching(/deleters\s+allow\s+not reached/),
    ])
    expect(troubles).toEqual([])
    await close()
  }, 90_000)

  it('as the holder of a pasted token is denied what the rules deny, and shows the rules that did not match', async () => {
    const { page, close, connect, choose, outcome } = await openTry()
    const token = await lab.token({ sub: 'bob', groups: ['dev'] })
    await connect('rules', ERAS[0] ?? '', { token })
    await choose('read_note')
    await page.getByRole('button', { name: 'Call', exact: true }).click()
    await outcome.getByText('Rules decide which tools').first().waitFor()
    const response = await fetch(`${lab.url}/rules`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'delete_note' } }),
    })
    expect(response.status).toBe(403)
    const denied = (await finished(lab.inspectUrl ?? '')).find(({ status }) => status === 403)
    await page.goto(`${lab.inspectUrl}#/requests/${denied?.id}`)
    const rules = page.getByRole('region', { name: 'Authorization' })
    await rules.getByText('denied by the default of the route').waitFor()
    expect(await rules.getByRole('row').filter({ hasText: 'deleters' }).innerText()).toContain('no match')
    await close()
  }, 90_000)

  it('on a route without the account of its user shows the link, which is no failure, and then calls with the account', async () => {
    const { page, troubles, close, connect, choose, outcome } = await openTry()
    for (const [era, user] of [
      [ERAS[0] ?? '', 'alice'],
      [ERAS[1] ?? '', 'bob'],
    ] as const) {
      await connect('connected', era, { user })
      await choose('connect_account')
      await page.getByRole('button', { name: 'Call', exact: true }).click()
      await outcome.getByText('Not connected: the route needs an account of its caller.').waitFor()
      const link = await outcome.getByRole('link', { name: `Connect the account of ${user}` }).getAttribute('href')
      expect(await outcome.getByRole('alert').count()).toBe(0)
      const href = await outcome.getByRole('link', { name: 'The request, as the proxy saw it' }).getAttribute('href')
      await connectThrough(link ?? '', { user }, (reason) => expect.fail(reason))

      await connect('connected', era, { user })
      await choose('show_request')
      await page.getByRole('button', { name: 'Call', exact: true }).click()
      await outcome.getByText('POST /connected/mcp').first().waitFor()

      await page.goto(`${lab.inspectUrl}${href}`)
      const part = page.getByRole('region', { name: 'Not connected' })
      await part.getByRole('heading', { name: 'Not connected: workspace' }).waitFor()
      expect(await part.innerText()).toContain('the user, in a browser')
      expect(await page.getByRole('region', { name: 'Error' }).count()).toBe(0)
      await page.goto(`${lab.inspectUrl}#/try`)
      await page.locator('select[name=route] option').first().waitFor({ state: 'attached' })
    }
    const { failures, routes } = await ask<{
      failures: { outcomes: Record<string, number[]>; reasons: object }
      routes: { name: string; lastFailure?: { reason: string } }[]
    }>(lab.inspectUrl ?? '', '/api/overview')
    expect(failures.outcomes['not_connected']?.some((count) => count > 0)).toBe(true)
    expect(failures.reasons).not.toHaveProperty('not_connected')
    expect(routes.find(({ name }) => name === 'connected')?.lastFailure?.reason).not.toBe('not_connected')
    expect(troubles).toEqual([])
    await close()
  }, 90_000)

  it('says that the login of a user was refused', async () => {
    const { page, close, connect, outcome } = await openTry()
    await connect('upstream', ERAS[0] ?? '', { user: 'mallory' })
    await outcome.getByText(/^Login refused/).waitFor()
    expect(await page.getByText('Internal error').count()).toBe(0)
    await close()
  }, 60_000)

  it('makes a form of the schema, shows progress and the result, and can be cancelled', async () => {
    const { page, troubles, close, connect, choose, outcome } = await openTry()
    for (const era of ERAS) {
      await connect('token-exchange', era, { user: 'bob' })
      await choose('stream_progress')
      await page.getByLabel('steps').fill('3')
      await page.getByLabel('intervalMs').fill('50')
      await page.getByRole('button', { name: 'Call', exact: true }).click()
      await outcome.getByText('3 steps done').first().waitFor()
      await outcome.getByText('step 3 of 3').first().waitFor()
      await outcome.getByText('3 notifications').waitFor()
      await page.getByRole('button', { name: 'Write JSON' }).click()
      expect(await page.getByLabel('Arguments as JSON').inputValue()).toContain('"steps": 3')

      await choose('wait')
      await page.getByLabel('ms', { exact: true }).fill('60000')
      await page.getByRole('button', { name: 'Call', exact: true }).click()
      await outcome.getByText('In progress').waitFor()
      await outcome.getByRole('button', { name: 'Cancel' }).click()
      await outcome.getByText('Cancelled.').waitFor()
    }
    expect(troubles).toEqual([])
    await close()
  }, 60_000)

  it('reads resources, gets prompts, and sends headers that a schema asks for', async () => {
    const { page, troubles, close, connect, choose, outcome } = await openTry()
    await connect('unauthenticated', ERAS[0] ?? '')
    await choose('test_x_mcp_header')
    await page.getByLabel(/^region/).fill('Île-de-France')
    await page.getByRole('button', { name: 'Call', exact: true }).click()
    await outcome.getByText('Île-de-France').first().waitFor()
    const choices = page.getByRole('navigation', { name: 'What the server offers' })
    for (const [kind, verb] of [
      ['Resources', 'Read'],
      ['Prompts', 'Get'],
    ] as const) {
      const list = choices.locator('section', { has: page.getByRole('heading', { name: new RegExp(`^${kind}`) }) })
      await list.getByRole('button').first().click()
      await page.getByRole('button', { name: verb, exact: true }).click()
      await outcome.getByText('Done.').waitFor()
      await outcome.locator('pre, p.hint').first().waitFor()
    }
    expect(troubles).toEqual([])
    await close()
  }, 60_000)

  it('masks the echoed request until it is revealed', async () => {
    const { page, troubles, close, connect, choose, outcome } = await openTry()
    for (const era of ERAS) {
      await connect('bearer-token', era, { user: 'alice' })
      await choose('show_request')
      await page.getByRole('button', { name: 'Call', exact: true }).click()
      await outcome.getByText('POST /bearer-token/mcp').first().waitFor()
      const [secret = ''] = /lab-[\w-]{8,}/.exec(lab.backend.requests().at(-1)?.headers.join(' ') ?? '') ?? []
      expect(secret).not.toBe('')
      expect(await outcome.textContent()).toContain('[masked]')
      expect(await outcome.textContent()).not.toContain(secret)
      await outcome.getByRole('button', { name: 'Show as it came' }).click()
      expect(await outcome.textContent()).toContain(secret)
      await outcome.getByRole('button', { name: 'Mask secrets' }).click()
      expect(await outcome.textContent()).not.toContain(secret)
    }
    expect(troubles).toEqual([])
    await close()
  }, 60_000)

  it('takes a pasted token, says why a request is refused, and keeps the token nowhere', async () => {
    const { page, troubles, close, connect, choose, outcome } = await openTry()
    const token = await lab.token({ sub: 'carol' })
    await connect('cloud-sts', ERAS[0] ?? '')
    await outcome.getByText('missing_token').waitFor()
    await outcome.getByText('resource_metadata=').waitFor()
    await connect('cloud-sts', ERAS[0] ?? '', { token: `Bearer ${token}` })
    await choose('show_request')
    await page.getByRole('button', { name: 'Call', exact: true }).click()
    await outcome.getByText('sessionName: carol').first().waitFor()
    const kept = await page.evaluate(
      'JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, location.href, history.state])',
    )
    expect(kept).not.toContain(token)
    expect(lab.log.lines.join('\n')).not.toContain(token)
    await page.reload()
    expect(await page.locator('input[name=token]').inputValue()).toBe('')
    expect(troubles).toEqual([])
    await close()
  }, 60_000)
})
