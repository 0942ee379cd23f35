import { afterEach, expect, test } from 'vitest'
import { ANONYMOUS } from '../../../src/core/index.ts'
import { Browser, type Seen, textOf } from '../../support/authserver/browser.ts'
import { asPerson, callerOf, startRig } from '../../support/connections/rig.ts'
import { createSockets } from '../../support/sockets.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const GOOD = 'lin_abc123'
const NEW = 'lin_abc456'
const NEED = { provider: 'tracker', problem: 'missing' } as const

async function rig(more: Readonly<Record<string, unknown>> = {}) {
  const tried: string[] = []
  const url = await sockets.http((request, response) => {
    tried.push(request.headers['x-key'] as string)
    response.writeHead([`Key ${GOOD}`, `Key ${NEW}`].includes(String(request.headers['x-key'])) ? 200 : 401).end()
  })
  const test = { url: `${url}/me`, header: 'X-Key', prefix: 'Key ' }
  const secret = { label: 'API key', helpUrl: 'https://help.example.com/keys', pattern: 'lin_[a-z0-9]+', test }
  const started = await startRig(sockets, {
    spec: () => ({ providers: [{ name: 'tracker', type: 'secret', secret }], ...more }),
  })
  return { ...started, tried }
}

/** Enters a key in the form of the page. */
const enter = (browser: Browser, page: Seen, key: string): Promise<Seen> => browser.press(page, 'continue', { key })

test('a key is checked, tried once, stored, and never shown again', async () => {
  const made = await rig()
  const alice = callerOf(made)
  const { url } = await made.links.link(alice, 'code', NEED)
  const browser = new Browser()
  const form = await asPerson(made, browser, await browser.get(url))
  expect(form.html).toMatch(/<input type="password" name="key" autocomplete="off"/)
  expect(textOf(form)).toContain('https://help.example.com/keys')

  const misspelled = await enter(browser, form, 'wrong')
  expect([misspelled.status, textOf(misspelled)]).toEqual([422, expect.stringContaining('not a valid API key')])
  expect(made.tried).toEqual([])
  const unknown = await enter(browser, misspelled, 'lin_other')
  expect([unknown.status, textOf(unknown)]).toEqual([422, expect.stringContaining('did not accept this API key')])
  expect(unknown.html).not.toContain('lin_other')
  const done = await enter(browser, unknown, GOOD)
  expect([done.status, textOf(done)]).toEqual([200, expect.stringContaining('is connected')])
  expect(done.html).not.toContain(GOOD)
  expect(made.tried).toEqual(['Key lin_other', `Key ${GOOD}`])
  expect((await made.main.accounts.current(alice, 'tracker', 'access_token')).token.reveal()).toBe(GOOD)
  expect((await new Browser().get(url)).status).toBe(404)
})

test.each(['', 'two words', 'schlüssel', 'lin_abc\r\nx-key: y', 'k'.repeat(4097)])(
  'without a pattern, %j is still no key',
  async (entered) => {
    const made = await rig({ providers: [{ name: 'tracker', type: 'secret', secret: { label: 'API key' } }] })
    const { url } = await made.links.link(callerOf(made), 'code', NEED)
    const browser = new Browser()
    const page = await enter(browser, await asPerson(made, browser, await browser.get(url)), entered)
    expect(page.status).toBe(422)
  },
)

test('a rejection of a replaced key does not break the new one', async () => {
  const made = await rig()
  const alice = callerOf(made)
  const connectKey = async (key: string) => {
    const { url } = await made.links.link(alice, 'code', NEED)
    const browser = new Browser()
    expect((await enter(browser, await asPerson(made, browser, await browser.get(url)), key)).status).toBe(200)
    return made.main.accounts.current(alice, 'tracker', 'access_token')
  }
  const old = await connectKey(GOOD)
  const token = await connectKey(NEW)
  for (let time = 0; time < 3; time++) expect(await made.main.accounts.reject(alice, 'tracker', old)).toBe(true)
  expect(await made.main.accounts.reject(alice, 'tracker', token)).toBe(true)
  expect((await made.main.accounts.current(alice, 'tracker', 'access_token')).token.reveal()).toBe(NEW)
})

test('a key that gets 401 twice within a minute is broken', async () => {
  const made = await rig()
  const alice = callerOf(made)
  const { url } = await made.links.link(alice, 'code', NEED)
  const browser = new Browser()
  await enter(browser, await asPerson(made, browser, await browser.get(url)), GOOD)
  const token = await made.main.accounts.current(alice, 'tracker', 'access_token')
  expect(await made.main.accounts.reject(alice, 'tracker', token)).toBe(true)
  made.clock.advance(60_000)
  expect(await made.main.accounts.reject(alice, 'tracker', token)).toBe(true)
  made.clock.advance(59_000)
  expect(await made.main.accounts.reject(alice, 'tracker', token)).toBe(false)
  await expect(async () => made.main.accounts.current(alice, 'tracker', 'access_token')).rejects.toMatchObject({
    connection: { provider: 'tracker', problem: 'ended' },
  })
})

test('the local user of a machine needs no login', async () => {
  const made = await rig({ login: [], singleUser: true })
  const { url } = await made.links.link(ANONYMOUS, 'code', NEED)
  const browser = new Browser()
  const done = await enter(browser, await browser.get(url), GOOD)
  expect(done.status).toBe(200)
  expect((await made.main.accounts.current(ANONYMOUS, 'tracker', 'access_token')).token.reveal()).toBe(GOOD)
  const page = await browser.get(new URL((await browser.get(`${made.url}/connections`)).location ?? '', made.url).href)
  expect(textOf(page)).toContain('tracker')
})
