import { afterEach, describe, expect, test } from 'vitest'
import type { Failure, UpstreamToken } from '../../../src/core/index.ts'
import { createSeal, createSealingKeys } from '../../../src/storage/index.ts'
import { Browser, textOf } from '../../support/authserver/browser.ts'
import {
  asPerson,
  atService,
  callerOf,
  connect,
  MISSING,
  SEALING_SECRET,
  startRig,
} from '../../support/connections/rig.ts'
import { createTestSecrets } from '../../support/ports.ts'
import { createSockets } from '../../support/sockets.ts'
import { ACCESS, REFRESH, SUBJECT } from '../../support/upstreams/idp.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const current = async (rig: Awaited<ReturnType<typeof startRig>>, sub = SUBJECT): Promise<UpstreamToken> =>
  rig.main.accounts.current(callerOf(rig, sub), 'github', 'access_token')
const missing = { code: 'not_connected', connection: { provider: 'github', problem: 'missing' } }
const refusals = (rig: Awaited<ReturnType<typeof startRig>>, cause: string) =>
  rig.metrics.value('extauth_connect_refusals_total', cause)

describe('connecting an account', () => {
  test('the person logs in, consents, and the next request has the token', async () => {
    const rig = await startRig(sockets)
    const alice = callerOf(rig)
    await expect(current(rig)).rejects.toMatchObject(missing)
    expect(await rig.links.isConnected(alice, 'github')).toBe(false)
    const notified: string[] = []
    const forget = rig.links.onConnected(alice, 'github', (id) => void notified.push(id))
    const link = await rig.links.link(alice, 'code', MISSING)
    expect(link.url).toMatch(/\/connect\/[A-Za-z0-9_-]{32}$/)
    expect(link.url).not.toContain(link.id)

    const browser = new Browser()
    const consent = await asPerson(rig, browser, await browser.get(link.url))
    const text = textOf(consent)
    for (const shown of ['github', 'User One', 'requests to code.example.com', 'repo', 'UTC'])
      expect(text).toContain(shown)
    const sent = await browser.press(consent, 'continue')
    const there = new URL(sent.location ?? '')
    expect(there.searchParams.get('code_challenge_method')).toBe('S256')
    expect(there.searchParams.get('login_hint')).toBeNull()
    const done = await atService(rig, browser, sent)
    expect([done.status, textOf(done)]).toEqual([200, expect.stringContaining('Your account at github is connected')])

    expect((await current(rig)).token.reveal()).toBe(ACCESS)
    expect(rig.main.accounts.current(alice, 'github', 'access_token')).not.toBeInstanceOf(Promise)
    expect(await rig.links.isConnected(alice, 'github')).toBe(true)
    await expect.poll(() => notified).toEqual([link.id])
    forget()
    await expect(current(rig, 'bob')).rejects.toMatchObject(missing)
  })

  test('50 parallel requests of one person get one link; another minute another one', async () => {
    const rig = await startRig(sockets)
    const other = rig.replica().links(new Map())
    const alice = callerOf(rig)
    const all = await Promise.all(
      Array.from({ length: 50 }, (_, index) => (index % 2 === 0 ? rig.links : other).link(alice, 'code', MISSING)),
    )
    expect(new Set(all.map(({ url }) => url)).size).toBe(1)
    rig.clock.advance(61_000)
    const next = await rig.links.link(alice, 'code', MISSING)
    expect(next.url).not.toBe(all[0]?.url)
    expect((await rig.links.link(callerOf(rig, 'bob'), 'code', MISSING)).url).not.toBe(next.url)
  })

  test('more than ten links a minute are refused', async () => {
    const rig = await startRig(sockets)
    const link = (scope: string) =>
      rig.links.link(callerOf(rig), 'code', { ...MISSING, problem: 'insufficient_scope', scopes: [scope] })
    for (let index = 0; index < 10; index++) await link(`scope-${index}`)
    await expect(link('one-more')).rejects.toMatchObject({ code: 'rate_limited' })
  })
})

describe('a link in other hands', () => {
  test('Bob logs in at the same issuer with Alice’s link: refused, and the link still works for Alice', async () => {
    const rig = await startRig(sockets)
    const { url } = await rig.links.link(callerOf(rig), 'code', MISSING)
    const bob = new Browser()
    const refused = await asPerson(rig, bob, await bob.get(url), 'bob')
    expect([refused.status, textOf(refused)]).toEqual([403, expect.stringContaining('made for somebody else')])
    expect(refused.html).not.toContain('<form')
    expect(refusals(rig, 'other_person')).toBe(1)
    await connect(rig, new Browser(), url)
    expect((await current(rig)).token.reveal()).toBe(ACCESS)
    await expect(current(rig, 'bob')).rejects.toMatchObject(missing)
  })

  test('Alice’s cookie in Bob’s browser gives Bob nothing', async () => {
    const rig = await startRig(sockets)
    const { url } = await rig.links.link(callerOf(rig), 'code', MISSING)
    const [alice, bob] = [new Browser(), new Browser()]
    const toIssuer = await alice.get(url)
    for (const [host, jar] of alice.cookies) bob.cookies.set(host, new Map(jar))
    const refused = await asPerson(rig, bob, toIssuer, 'bob')
    expect(refused.status).toBe(403)
    await expect(current(rig)).rejects.toMatchObject(missing)
  })

  test('a response at the wrong browser is refused at each step', async () => {
    const rig = await startRig(sockets)
    const { url } = await rig.links.link(callerOf(rig), 'code', MISSING)
    const alice = new Browser()
    expect((await asPerson(rig, new Browser(), await alice.get(url))).status).toBe(400)
    const consent = await asPerson(rig, alice, await alice.get(url))
    expect((await new Browser().press(consent, 'continue')).status).toBe(400)
    const again = await asPerson(rig, alice, await alice.get(url))
    const sent = await alice.press(again, 'continue')
    expect((await atService(rig, new Browser(), sent)).status).toBe(400)
    // The same cookie names with secrets of another browser.
    const mallory = new Browser()
    for (const [host, jar] of alice.cookies)
      mallory.cookies.set(host, new Map([...jar.keys()].map((name) => [name, 'A'.repeat(43)])))
    expect((await atService(rig, mallory, sent)).status).toBe(400)
    await expect(current(rig)).rejects.toMatchObject(missing)
    expect((await atService(rig, alice, sent)).status).toBe(200)
  })

  test('opening a link uses nothing up, a used one is over', async () => {
    const rig = await startRig(sockets)
    const { url } = await rig.links.link(callerOf(rig), 'code', MISSING)
    for (let index = 0; index < 3; index++) expect((await new Browser().get(url)).status).toBe(303)
    await connect(rig, new Browser(), url)
    const replayed = await new Browser().get(url)
    expect([replayed.status, textOf(replayed)]).toEqual([404, expect.stringContaining('can’t be used any more')])
    expect(textOf(replayed)).toMatch(/Request \S+/)
    expect((await new Browser().get(`${rig.url}/connect/${'A'.repeat(32)}`)).status).toBe(404)
  })

  test('of two tabs one connects', async () => {
    const rig = await startRig(sockets)
    const { url } = await rig.links.link(callerOf(rig), 'code', MISSING)
    const browser = new Browser()
    const one = await asPerson(rig, browser, await browser.get(url))
    const other = await asPerson(rig, browser, await browser.get(url))
    const sent = await browser.press(one, 'continue')
    expect((await browser.press(other, 'continue')).status).toBe(404)
    expect((await atService(rig, browser, sent)).status).toBe(200)
  })

  test('a link lasts ten minutes', async () => {
    const rig = await startRig(sockets)
    const { url } = await rig.links.link(callerOf(rig), 'code', MISSING)
    rig.clock.advance(10 * 60_000)
    expect((await new Browser().get(url)).status).toBe(404)
  })

  test('a link of one replica is completed at another', async () => {
    const rig = await startRig(sockets)
    const { url } = await rig.links.link(callerOf(rig), 'code', MISSING)
    const second = rig.replica()
    await second.opened()
    const browser = new Browser()
    const consent = await asPerson(rig, browser, await browser.get(url))
    rig.serve(second)
    await atService(rig, browser, await browser.press(consent, 'continue'))
    expect((await current(rig)).token.reveal()).toBe(ACCESS)
  })
})

describe('what does not end well', () => {
  const nothingStored = async (rig: Awaited<ReturnType<typeof startRig>>) => {
    await expect(current(rig)).rejects.toMatchObject(missing)
  }

  test('canceled at the consent page', async () => {
    const rig = await startRig(sockets)
    const { url } = await rig.links.link(callerOf(rig), 'code', MISSING)
    const browser = new Browser()
    const page = await browser.press(await asPerson(rig, browser, await browser.get(url)), 'cancel')
    expect([page.status, textOf(page)]).toEqual([200, expect.stringContaining('Nothing was connected')])
    expect((await browser.get(url)).status).toBe(404)
    expect((await rig.links.link(callerOf(rig), 'code', MISSING)).url).not.toBe(url)
    await nothingStored(rig)
  })

  test('declined at the service', async () => {
    const rig = await startRig(sockets)
    const { url } = await rig.links.link(callerOf(rig), 'code', MISSING)
    const browser = new Browser()
    const sent = await browser.press(await asPerson(rig, browser, await browser.get(url)), 'continue')
    const page = await atService(rig, browser, sent, { code: '', error: 'access_denied' })
    expect([page.status, textOf(page)]).toEqual([403, expect.stringContaining('Access was not allowed')])
    expect(textOf(page)).toMatch(/Request \S+/)
    await nothingStored(rig)
  })

  test.each(['people', 'service'] as const)('%s has no discovery document', async (which) => {
    const rig = await startRig(sockets)
    const { url } = await rig.links.link(callerOf(rig), 'code', MISSING)
    const browser = new Browser()
    rig[which].discovery = { status: 503 }
    const first = await browser.get(url)
    const page = which === 'people' ? first : await browser.press(await asPerson(rig, browser, first), 'continue')
    expect([page.status, textOf(page)]).toEqual([503, expect.stringContaining('cannot be reached')])
    // Nothing was used up.
    rig[which].discovery = undefined
    rig.clock.advance(30_000)
    expect((await connect(rig, new Browser(), url)).status).toBe(200)
  })

  test.each(['people', 'service'] as const)('the token endpoint of %s fails', async (which) => {
    const rig = await startRig(sockets)
    const { url } = await rig.links.link(callerOf(rig), 'code', MISSING)
    const browser = new Browser()
    rig[which].token = { status: 500, body: 'internal' }
    const first = await asPerson(rig, browser, await browser.get(url))
    const page = which === 'people' ? first : await atService(rig, browser, await browser.press(first, 'continue'))
    expect(page.status).toBeGreaterThanOrEqual(500)
    expect(textOf(page)).toMatch(/Nothing was connected.*Request \S+/)
    await nothingStored(rig)
  })

  test('an ID token without the claims of the caller is of another person', async () => {
    const rig = await startRig(sockets, {
      spec: ({ people }) => ({
        login: [
          {
            issuerUrl: people.url,
            clientId: 'us',
            clientSecretRef: { name: 'idp', key: 'secret' },
            caBundleRef: { name: 'idp', key: 'ca' },
            match: ['tid', 'oid'],
          },
        ],
      }),
    })
    const { people } = rig
    const alice = { ...callerOf(rig), claims: { sub: 'pairwise', tid: 't', oid: 'o' } }
    await expect(rig.links.link(callerOf(rig), 'code', MISSING)).rejects.toMatchObject({ code: 'config_error' })
    const { url } = await rig.links.link(alice, 'code', MISSING)
    const browser = new Browser()
    people.claims = { tid: 't' }
    expect((await asPerson(rig, browser, await browser.get(url))).status).toBe(403)
    people.claims = { tid: 't', oid: 'o' }
    expect((await asPerson(rig, browser, await browser.get(url))).status).toBe(200)
  })
})

describe('the life of a connection', () => {
  const connected = async (options?: Parameters<typeof startRig>[1]) => {
    const rig = await startRig(sockets, options)
    const { url } = await rig.links.link(callerOf(rig), 'code', MISSING)
    const done = await connect(rig, new Browser(), url)
    expect(done.status).toBe(200)
    return rig
  }

  test('a due token is refreshed once for all replicas, and stored before use', async () => {
    const rig = await connected()
    const second = rig.replica()
    await second.opened()
    rig.service.tokens = { access_token: 'second-token', refresh_token: 'second-refresh', id_token: undefined }
    rig.clock.advance(3600_000 - 30_000)
    const asked = rig.service.count('/token')
    const all = await Promise.all(
      [rig.main, second, rig.main, second].map(async ({ accounts }) =>
        accounts.current(callerOf(rig), 'github', 'access_token'),
      ),
    )
    expect(all.map(({ token }) => token.reveal())).toEqual(Array.from({ length: 4 }, () => 'second-token'))
    expect(rig.service.count('/token')).toBe(asked + 1)
  })

  test('a refused refresh ends it, with the reason', async () => {
    const rig = await connected()
    rig.service.token = { status: 400, body: { error: 'invalid_grant' } }
    rig.clock.advance(3600_000)
    const ended = { code: 'not_connected', connection: { provider: 'github', problem: 'ended' } }
    await expect(current(rig)).rejects.toMatchObject(ended)
    await expect(current(rig)).rejects.toMatchObject(ended)
    expect(await rig.links.isConnected(callerOf(rig), 'github')).toBe(false)
    // Connecting again mends it.
    rig.service.token = undefined
    const { url } = await rig.links.link(callerOf(rig), 'code', { provider: 'github', problem: 'ended' })
    await connect(rig, new Browser(), url)
    expect((await current(rig)).token.reveal()).toBe(ACCESS)
  })

  test('a backend’s rejection refreshes it; that of the fresh token breaks it on all replicas', async () => {
    const rig = await connected()
    const second = rig.replica()
    await second.opened()
    const alice = callerOf(rig)
    const first = await current(rig)
    expect((await second.accounts.current(alice, 'github', 'access_token')).token.reveal()).toBe(ACCESS)
    rig.service.tokens = { access_token: 'fresh', refresh_token: 'next', id_token: undefined }
    expect(await rig.main.accounts.reject(alice, 'github', first)).toBe(true)
    const fresh = await current(rig)
    expect(fresh.token.reveal()).toBe('fresh')
    expect(await rig.main.accounts.reject(alice, 'github', fresh)).toBe(false)
    await expect(current(rig)).rejects.toMatchObject({ connection: { problem: 'ended' } })
    await expect
      .poll(async () => {
        const failure = await Promise.resolve()
          .then(() => second.accounts.current(alice, 'github', 'access_token'))
          .catch((error: Failure) => error)
        return 'connection' in failure && failure.connection?.problem
      })
      .toBe('ended')
  })

  test('missing scopes are added to those of the connection, and requested', async () => {
    const rig = await connected()
    const alice = callerOf(rig)
    const failure = await rig.main.accounts.widen(alice, 'github', ['admin']).catch((error: Failure) => error)
    const need = failure.connection
    expect(need).toEqual({ provider: 'github', problem: 'insufficient_scope', scopes: ['openid', 'repo', 'admin'] })
    const { url } = await rig.links.link(alice, 'code', need ?? MISSING)
    const browser = new Browser()
    const consent = await asPerson(rig, browser, await browser.get(url))
    expect(textOf(consent)).toContain('admin')
    const sent = await browser.press(consent, 'continue')
    expect(new URL(sent.location ?? '').searchParams.get('scope')).toBe('openid repo admin')
  })

  test('it ends after maxAge', async () => {
    const rig = await connected({
      spec: ({ service }) => ({
        providers: [
          {
            name: 'github',
            type: 'oidc',
            caBundleRef: { name: 'idp', key: 'ca' },
            maxAge: '2h',
            oidcConfig: { issuerUrl: service.url, clientId: 'us', clientSecretRef: { name: 'idp', key: 'secret' } },
          },
        ],
      }),
    })
    rig.clock.advance(3600_000)
    expect(await rig.links.isConnected(callerOf(rig), 'github')).toBe(true)
    rig.clock.advance(3600_000)
    await expect(current(rig)).rejects.toMatchObject({ connection: { problem: 'ended' } })
  })

  test('connecting again replaces it, without revoking the new grant', async () => {
    const rig = await connected()
    const alice = callerOf(rig)
    const before = await rig.main.accounts.keyParts(alice, 'github')
    rig.service.tokens = { access_token: 'another' }
    rig.service.claims = { at_hash: undefined }
    rig.clock.advance(61_000)
    const { url } = await rig.links.link(alice, 'code', MISSING)
    expect((await connect(rig, new Browser(), url)).status).toBe(200)
    expect((await current(rig)).token.reveal()).toBe('another')
    expect(await rig.main.accounts.keyParts(alice, 'github')).not.toEqual(before)
    expect(rig.service.count('/revoke')).toBe(0)
  })

  test('a connection is of one issuer: the same subject elsewhere has none', async () => {
    const rig = await connected()
    const other = { ...callerOf(rig), issuer: 'https://other.example.com' }
    await expect(async () => rig.main.accounts.current(other, 'github', 'access_token')).rejects.toMatchObject(missing)
  })

  test('a replica uses the new connection after another replica replaced it', async () => {
    const rig = await connected()
    const alice = callerOf(rig)
    const second = rig.replica()
    await second.opened()
    expect((await second.accounts.current(alice, 'github', 'access_token')).token.reveal()).toBe(ACCESS)
    rig.service.tokens = { access_token: 'another' }
    rig.service.claims = { at_hash: undefined }
    rig.clock.advance(61_000)
    const { url } = await rig.links.link(alice, 'code', MISSING)
    expect((await connect(rig, new Browser(), url)).status).toBe(200)
    await expect
      .poll(async () => (await second.accounts.current(alice, 'github', 'access_token')).token.reveal())
      .toBe('another')
  })

  test('a record that was moved to another person in the store is not used', async () => {
    const rig = await connected()
    const seal = createSeal(
      createSealingKeys([createTestSecrets({ 'keys/seal': SEALING_SECRET }).get('keys/seal')]),
      rig.clock,
    )
    const keyOf = (sub: string) =>
      `connections:${seal.lookupKey('connections', JSON.stringify([rig.people.url, `sub:${sub}`]))}`
    const own = await rig.store.get(keyOf(SUBJECT))
    if (own === undefined) throw new Error('the connection is not in the store')
    await rig.store.put(keyOf('bob'), own.value, 60_000)
    await expect(current(rig, 'bob')).rejects.toMatchObject(missing)

    // Even a pointer that is sealed for Bob does not give him Alice's session.
    const pointer: unknown = JSON.parse((await seal.open(keyOf(SUBJECT), own.value))?.plain.toString() ?? '')
    await rig.store.put(keyOf('bob'), seal.seal(keyOf('bob'), Buffer.from(JSON.stringify(pointer))), 60_000)
    await expect(current(rig, 'bob')).rejects.toMatchObject({ code: 'internal_error' })
    expect((await current(rig)).token.reveal()).toBe(ACCESS)
  })

  test('a store that is down: live tokens continue, others get 503', async () => {
    let isDown = false
    const { StoreError } = await import('../../../src/storage/index.ts')
    const rig = await connected({
      store: (store) =>
        new Proxy(store, {
          get(target, name, receiver) {
            const value: unknown = Reflect.get(target, name, receiver)
            if (!isDown || typeof value !== 'function' || name === 'health' || name === 'close') return value
            return () => Promise.reject(new StoreError('unavailable'))
          },
        }),
    })
    expect((await current(rig)).token.reveal()).toBe(ACCESS)
    isDown = true
    expect((await current(rig)).token.reveal()).toBe(ACCESS)
    await expect(current(rig, 'bob')).rejects.toMatchObject({ code: 'store_unavailable' })
    await expect(rig.links.link(callerOf(rig, 'bob'), 'code', MISSING)).rejects.toMatchObject({
      code: 'store_unavailable',
    })
  })

  test('the store has no token, no person and no link in clear text', async () => {
    const puts: string[] = []
    const rig = await connected({
      store: (store) =>
        new Proxy(store, {
          get(target, name, receiver) {
            const value: unknown = Reflect.get(target, name, receiver)
            if (typeof value !== 'function') return value
            return (...args: unknown[]) => {
              puts.push(...args.map((arg) => (Buffer.isBuffer(arg) ? arg.toString('latin1') : String(arg))))
              return Reflect.apply(value, target, args) as unknown
            }
          },
        }),
    })
    const { url } = await rig.links.link(callerOf(rig, 'bob'), 'code', MISSING)
    expect(puts.length).toBeGreaterThan(20)
    const text = puts.join('\n')
    for (const secret of [ACCESS, REFRESH, SUBJECT, 'bob', rig.people.url, url.slice(-32)])
      expect(text).not.toContain(secret)
  })
})
