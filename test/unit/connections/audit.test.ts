import { afterEach, expect, test } from 'vitest'
import { Browser } from '../../support/authserver/browser.ts'
import { asPerson, atService, callerOf, connect, MISSING, startRig } from '../../support/connections/rig.ts'
import { createSockets } from '../../support/sockets.ts'
import { ACCESS, REFRESH, SUBJECT } from '../../support/upstreams/idp.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

test('the audit trail has every change of a connection, with person and provider and without tokens and links', async () => {
  const rig = await startRig(sockets)
  const alice = callerOf(rig)
  const links: string[] = []
  const connectOnce = async () => {
    rig.clock.advance(61_000)
    const { url, id } = await rig.links.link(alice, 'code', MISSING)
    links.push(url.slice(-32))
    await connect(rig, new Browser(), url)
    return id
  }
  const first = await connectOnce()
  await connectOnce()
  rig.service.token = { status: 400, body: { error: 'invalid_grant' } }
  rig.clock.advance(3600_000)
  expect(await rig.links.isConnected(alice, 'github')).toBe(false)
  await expect.poll(() => rig.notices.at(-1)?.type).toBe('account_broken')
  rig.service.token = undefined
  await connectOnce()
  expect(await rig.main.disconnect({ issuer: rig.people.url, subject: SUBJECT })).toBe(1)
  await expect.poll(() => rig.notices.at(-1)?.type).toBe('account_disconnected')

  expect(
    rig.notices.map(({ type, outcome, details }) => [type, outcome, details?.['cause'] ?? details?.['by']]),
  ).toEqual([
    ['account_connected', 'success', undefined],
    ['account_replaced', 'success', undefined],
    ['account_broken', 'failure', 'ended_by_provider'],
    ['account_replaced', 'success', undefined],
    ['account_disconnected', 'success', 'operator'],
  ])
  for (const notice of rig.notices)
    expect(notice).toMatchObject({
      component: 'connections',
      userId: SUBJECT,
      target: { type: 'connection', name: 'github' },
      details: { issuer: rig.people.url },
    })
  expect(rig.notices[0]).toMatchObject({
    client: '127.0.0.1',
    requestId: expect.any(String) as string,
    details: { prompt: first, route: 'code', scopes: ['openid', 'repo'] },
  })
  const text = JSON.stringify(rig.notices)
  for (const secret of [ACCESS, REFRESH, ...links]) expect(text).not.toContain(secret)
})

test('a token that a backend rejects breaks the connection once, with the cause', async () => {
  const rig = await startRig(sockets)
  const alice = callerOf(rig)
  await connect(rig, new Browser(), (await rig.links.link(alice, 'code', MISSING)).url)
  rig.service.tokens = { access_token: 'fresh', id_token: undefined }
  const current = async () => rig.main.accounts.current(alice, 'github', 'access_token')
  await rig.main.accounts.reject(alice, 'github', await current())
  const fresh = await current()
  await Promise.all([1, 2, 3].map(() => rig.main.accounts.reject(alice, 'github', fresh)))
  await expect.poll(() => rig.notices.filter(({ type }) => type === 'account_broken')).toHaveLength(1)
  expect(rig.notices.at(-1)).toMatchObject({ userId: SUBJECT, details: { cause: 'rejected_by_backend' } })
})

test('an attempt to connect that fails is an event with its cause', async () => {
  const rig = await startRig(sockets)
  const { url, id } = await rig.links.link(callerOf(rig), 'code', MISSING)
  const [alice, bob] = [new Browser(), new Browser()]
  await asPerson(rig, bob, await bob.get(url), 'bob')
  await new Browser().get(`${rig.url}/connect/${'A'.repeat(32)}`)
  await asPerson(rig, new Browser(), await alice.get(url))
  const sent = await alice.press(await asPerson(rig, alice, await alice.get(url)), 'continue')
  await atService(rig, alice, sent, { code: '', error: 'access_denied' })
  rig.clock.advance(61_000)
  const next = await rig.links.link(callerOf(rig), 'code', MISSING)
  const again = await alice.press(await asPerson(rig, alice, await alice.get(next.url)), 'continue')
  rig.service.token = { status: 500 }
  await atService(rig, alice, again)
  const known = { userId: SUBJECT, target: { name: 'github' } }
  expect(rig.notices).toMatchObject([
    { outcome: 'denied', ...known, details: { cause: 'other_person', prompt: id } },
    { outcome: 'denied', userId: undefined, details: { cause: 'unknown' } },
    { outcome: 'denied', userId: undefined, details: { cause: 'other_browser' } },
    { outcome: 'failure', ...known, details: { cause: 'canceled', prompt: id } },
    { outcome: 'error', ...known, details: { cause: 'failed', prompt: next.id } },
  ])
  for (const { type, requestId } of rig.notices)
    expect([type, requestId]).toEqual(['connect_refused', expect.any(String)])
  expect(JSON.stringify(rig.notices)).not.toContain(url.slice(-32))
})
