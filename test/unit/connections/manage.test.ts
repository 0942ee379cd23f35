import { afterEach, expect, test } from 'vitest'
import { adminEndpoints } from '../../../src/compose/admin.ts'
import { Browser, type Seen, textOf } from '../../support/authserver/browser.ts'
import { asPerson, callerOf, connect, type ConnectionRig, MISSING, startRig } from '../../support/connections/rig.ts'
import { createSockets } from '../../support/sockets.ts'
import { ACCESS, REFRESH, SUBJECT } from '../../support/upstreams/idp.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

/** Logs in to the page that lists connections. */
async function enter(rig: ConnectionRig, browser: Browser, sub = SUBJECT): Promise<Seen> {
  const back = await asPerson(rig, browser, await browser.get(`${rig.url}/connections`), sub)
  return browser.get(new URL(back.location ?? '', rig.url).href)
}
const post = (rig: ConnectionRig, browser: Browser, fields: Readonly<Record<string, string>>, origin = rig.url) => {
  const cookie = [...(browser.cookies.get(new URL(rig.url).host) ?? [])].map(([name, value]) => `${name}=${value}`)
  return fetch(`${rig.url}/connections`, {
    method: 'POST',
    body: new URLSearchParams(fields),
    redirect: 'manual',
    headers: { origin, cookie: cookie.join('; ') },
  })
}
const disconnect = (rig: ConnectionRig, browser: Browser, token: string, origin = rig.url) =>
  post(rig, browser, { token, disconnect: 'github' }, origin)
/** Presses a button of the page; returns its text. */
async function press(rig: ConnectionRig, browser: Browser, action: string): Promise<string> {
  const page = await browser.get(`${rig.url}/connections`)
  const answer = await post(rig, browser, { token: tokenIn(page), [action]: 'github' })
  expect(answer.status).toBe(200)
  return textOf({ ...page, html: await answer.text() })
}
const tokenIn = ({ html }: Seen) => /name="token" value="([^"]+)"/.exec(html)?.[1] ?? ''

async function connected(options: Parameters<typeof startRig>[1] = {}) {
  const rig = await startRig(sockets, options)
  rig.service.metadata = { revocation_endpoint: `${rig.service.url}/revoke` }
  rig.service.revocation = { status: 200 }
  const { url } = await rig.links.link(callerOf(rig), 'code', MISSING)
  await connect(rig, new Browser(), url)
  return rig
}

test('people see their own connections, and no credential', async () => {
  const rig = await connected()
  const browser = new Browser()
  const page = await enter(rig, browser)
  const text = textOf(page)
  for (const shown of ['github', 'one@example.com', 'Access: openid, repo', 'User One']) expect(text).toContain(shown)
  expect(page.html).not.toContain('access-token')
  expect(textOf(await enter(rig, new Browser(), 'bob'))).toContain('You have connected no account')
})

test('disconnecting deletes the connection, and revokes it at the service', async () => {
  const rig = await connected()
  const browser = new Browser()
  await enter(rig, browser)
  expect(await press(rig, browser, 'disconnect')).toContain('github was disconnected. The access was revoked there.')
  expect(await rig.links.isConnected(callerOf(rig), 'github')).toBe(false)
  const revoked = rig.service.asked.filter(({ path }) => path === '/revoke').map(({ form }) => form['token'])
  expect(revoked).toEqual([REFRESH, ACCESS])
  expect(rig.notices.at(-1)).toMatchObject({
    type: 'account_disconnected',
    userId: SUBJECT,
    details: { by: 'person', revocation: 'revoked', issuer: rig.people.url },
  })
  // Nothing is left, so it has not ended either.
  await expect(async () => rig.main.accounts.current(callerOf(rig), 'github', 'access_token')).rejects.toMatchObject({
    connection: { problem: 'missing' },
  })
})

test.each([
  ['fails', { status: 503 }, 'could not be revoked there: remove it in your account settings'],
  ['is not supported', undefined, 'offers no revocation here'],
])('a revocation that %s is reported, and the connection is deleted', async (_name, revocation, text) => {
  const rig = await connected()
  rig.service.revocation = revocation
  if (revocation === undefined) rig.service.metadata = {}
  rig.clock.advance(3600_000)
  const browser = new Browser()
  await enter(rig, browser)
  expect(await press(rig, browser, 'disconnect')).toContain(text)
  expect(await rig.links.isConnected(callerOf(rig), 'github')).toBe(false)
})

test('a test tries the token at the service once, and changes nothing', async () => {
  const rig = await connected()
  const browser = new Browser()
  await enter(rig, browser)
  const before = rig.service.count('/userinfo')
  expect(await press(rig, browser, 'test')).toContain('github accepts this connection')
  expect(rig.service.count('/userinfo')).toBe(before + 1)
  expect(rig.service.asked.at(-1)?.headers.authorization).toBe(`Bearer ${ACCESS}`)
  rig.service.userInfo = { status: 401 }
  expect(await press(rig, browser, 'test')).toContain('does not accept this connection any more')
  rig.service.userInfo = { status: 500 }
  expect(await press(rig, browser, 'test')).toContain('could not be reached')
  expect(await rig.links.isConnected(callerOf(rig), 'github')).toBe(true)
})

test('renewing is a new login at the service that replaces the connection', async () => {
  const rig = await connected()
  const browser = new Browser()
  const before = await rig.main.accounts.keyParts(callerOf(rig), 'github')
  rig.clock.advance(61_000)
  const page = await enter(rig, browser)
  const sent = await post(rig, browser, { token: tokenIn(page), renew: 'github' })
  expect(sent.status).toBe(303)
  const link = new URL(sent.headers.get('location') ?? '')
  expect(link.pathname).toMatch(/^\/connect\/[A-Za-z0-9_-]{32}$/)
  const done = await connect(rig, browser, link.href)
  expect(textOf(done)).toContain('is connected')
  expect(await rig.main.accounts.keyParts(callerOf(rig), 'github')).not.toEqual(before)
  expect(rig.notices.map(({ type }) => type)).toEqual(['account_connected', 'account_replaced'])
  expect(textOf(await browser.get(`${rig.url}/connections`))).toContain('Disconnect github')
})

test('the page shows the day of the last use, which costs no write per call', async () => {
  const writes: string[] = []
  const rig = await connected({
    store: (store) => ({
      ...store,
      compareAndSet(key, ...args) {
        writes.push(key)
        return store.compareAndSet(key, ...args)
      },
    }),
  })
  const browser = new Browser()
  expect(textOf(await enter(rig, browser))).toContain('Not used yet')
  const calls = async () => {
    for (let index = 0; index < 20; index++) await rig.main.accounts.current(callerOf(rig), 'github', 'access_token')
  }
  const shown = async () => textOf(await browser.get(`${rig.url}/connections`))
  await calls()
  const dayOf = () => new Date(rig.clock.now()).toISOString().slice(0, 10)
  await expect.poll(shown).toContain(`Last used on ${dayOf()}`)
  const before = writes.length
  expect(before).toBeGreaterThan(0)
  await calls()
  expect(writes).toHaveLength(before)
})

test('a form without an action, with two, or for another provider changes nothing', async () => {
  const rig = await connected()
  const browser = new Browser()
  const token = tokenIn(await enter(rig, browser))
  expect((await post(rig, browser, { token })).status).toBe(400)
  expect((await post(rig, browser, { token, test: 'github', disconnect: 'github' })).status).toBe(400)
  const other = await post(rig, browser, { token, disconnect: '<b>other</b>' })
  expect([other.status, await other.text()]).toEqual([200, expect.not.stringContaining('other')])
  expect(await rig.links.isConnected(callerOf(rig), 'github')).toBe(true)
})

test('a form of another site, of another person or without a login does nothing', async () => {
  const rig = await connected()
  const [alice, bob] = [new Browser(), new Browser()]
  const token = tokenIn(await enter(rig, alice))
  await enter(rig, bob, 'bob')
  expect((await disconnect(rig, bob, token)).status).toBe(400)
  expect((await disconnect(rig, new Browser(), token)).status).toBe(400)
  expect((await disconnect(rig, alice, 'x'.repeat(token.length))).status).toBe(400)
  expect((await disconnect(rig, alice, token, 'https://evil.example.com')).status).toBe(403)
  expect(await rig.links.isConnected(callerOf(rig), 'github')).toBe(true)
})

test('the login lasts 15 minutes', async () => {
  const rig = await connected()
  const browser = new Browser()
  await enter(rig, browser)
  rig.clock.advance(15 * 60_000)
  expect((await browser.get(`${rig.url}/connections`)).status).toBe(303)
})

test('an operator ends the connections of one caller', async () => {
  const rig = await connected()
  const issuer = rig.people.url
  expect(await rig.main.disconnect({ issuer, subject: 'bob' })).toBe(0)
  expect(await rig.main.disconnect({ issuer, subject: SUBJECT, provider: 'other' })).toBe(0)
  const controls = { disconnect: (filter: Parameters<typeof rig.main.disconnect>[0]) => rig.main.disconnect(filter) }
  const endpoint = adminEndpoints(controls as unknown as Parameters<typeof adminEndpoints>[0])['DELETE /connections']
  const call = (query: Readonly<Record<string, string>>) =>
    endpoint?.({ query: new URLSearchParams(query) } as Parameters<typeof endpoint>[0])
  for (const query of [
    {},
    { issuer },
    { issuer, subject: '' },
    { issuer, subject: SUBJECT, provider: '' },
    { isuer: issuer },
  ])
    expect(await call(query)).toMatchObject({ status: 400 })
  expect(await rig.links.isConnected(callerOf(rig), 'github')).toBe(true)
  expect(await call({ issuer, subject: SUBJECT })).toEqual({ status: 200, json: { disconnected: 1 } })
  expect(await rig.links.isConnected(callerOf(rig), 'github')).toBe(false)
})

test('an operator lists connections by keyed hash, in pages', async () => {
  const rig = await connected()
  const issuer = rig.people.url
  const controls = { connections: (filter: Parameters<typeof rig.main.list>[0]) => rig.main.list(filter) }
  const endpoint = adminEndpoints(controls as unknown as Parameters<typeof adminEndpoints>[0])['GET /connections']
  const call = (query: Readonly<Record<string, string>>) =>
    endpoint?.({ query: new URLSearchParams(query) } as Parameters<typeof endpoint>[0])
  for (const query of [{ issuer }, { subject: SUBJECT }, { provider: '' }, { caller: 'x' }])
    expect(await call(query)).toMatchObject({ status: 400 })
  const all = await rig.main.list({})
  const [first] = all.callers
  expect(all).toEqual({
    providers: { github: { connected: 1, broken: 0 } },
    callers: [
      {
        caller: expect.stringMatching(/^[\w-]{22}$/) as string,
        connections: [{ provider: 'github', state: 'connected' }],
      },
    ],
  })
  expect(await call({ issuer, subject: SUBJECT })).toEqual({ status: 200, json: all })
  expect(await call({ issuer, subject: 'bob' })).toEqual({ status: 200, json: { providers: {}, callers: [] } })
  // Counts are those of all pages.
  expect(await rig.main.list({ after: first?.caller })).toEqual({ ...all, callers: [] })
  rig.service.token = { status: 400, body: { error: 'invalid_grant' } }
  rig.clock.advance(3600_000)
  expect(await rig.links.isConnected(callerOf(rig), 'github')).toBe(false)
  await expect
    .poll(() => rig.main.list({ provider: 'github' }))
    .toMatchObject({ providers: { github: { connected: 0, broken: 1 } }, callers: [{ caller: first?.caller }] })
})
