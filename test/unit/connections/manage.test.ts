import { afterEach, expect, test } from 'vitest'
import { adminEndpoints } from '../../../src/compose/admin.ts'
import { Browser, type Seen, textOf } from '../../support/authserver/browser.ts'
import { asPerson, callerOf, connect, type ConnectionRig, MISSING, startRig } from '../../support/connections/rig.ts'
import { createSockets } from '../../support/sockets.ts'
import { SUBJECT } from '../../support/upstreams/idp.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

/** Logs in to the page that lists connections. */
async function enter(rig: ConnectionRig, browser: Browser, sub = SUBJECT): Promise<Seen> {
  const back = await asPerson(rig, browser, await browser.get(`${rig.url}/connections`), sub)
  return browser.get(new URL(back.location ?? '', rig.url).href)
}
const disconnect = (rig: ConnectionRig, browser: Browser, token: string, origin = rig.url) => {
  const cookie = [...(browser.cookies.get(new URL(rig.url).host) ?? [])].map(([name, value]) => `${name}=${value}`)
  return fetch(`${rig.url}/connections`, {
    method: 'POST',
    body: new URLSearchParams({ token, disconnect: 'github' }),
    headers: { origin, cookie: cookie.join('; ') },
  })
}
const tokenIn = ({ html }: Seen) => /name="token" value="([^"]+)"/.exec(html)?.[1] ?? ''

async function connected() {
  const rig = await startRig(sockets)
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
  const page = await enter(rig, browser)
  const answer = await disconnect(rig, browser, tokenIn(page))
  expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining('github was disconnected')])
  expect(await rig.links.isConnected(callerOf(rig), 'github')).toBe(false)
  await expect.poll(() => rig.service.count('/revoke')).toBe(1)
  // Nothing is left, so it has not ended either.
  await expect(async () => rig.main.accounts.current(callerOf(rig), 'github', 'access_token')).rejects.toMatchObject({
    connection: { problem: 'missing' },
  })
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
