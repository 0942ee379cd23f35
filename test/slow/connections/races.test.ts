import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import type { ConnectionService } from '../../../src/connections/index.ts'
import { asFailure } from '../../../src/core/index.ts'
import { Browser } from '../../support/authserver/browser.ts'
import { asPerson, atService, callerOf, connect, MISSING, startRig } from '../../support/connections/rig.ts'
import { type Deployment, startDeployment } from '../../support/redis/deployment.ts'
import { operate } from '../../support/redis/operator.ts'
import { createSockets } from '../../support/sockets.ts'
import { createReplica, newScope } from '../../support/storage/redis-world.ts'
import { ACCESS, REFRESH, SUBJECT } from '../../support/upstreams/idp.ts'

let deployment: Deployment
const sockets = createSockets()
const cleanups: (() => unknown)[] = []

beforeAll(async () => {
  deployment = await startDeployment()
}, 180_000)
afterAll(() => deployment.close())
afterEach(async () => {
  await sockets.closeAll()
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup()
})

const redis = (...words: string[]) => operate(deployment.nodes[0]?.port ?? 0, words)

/** Replicas with one store, or each with its own connections to one Redis. */
const STORES = {
  memory: () => ({}),
  Redis() {
    const scope = newScope()
    return {
      storeOfReplica() {
        const { store, stores } = createReplica(deployment.config(), scope)
        cleanups.push(() => stores.close())
        return store
      },
    }
  },
}

describe.each(['memory', 'Redis'] as const)('replicas with %s', (kind) => {
  async function startTwo() {
    const rig = await startRig(sockets, STORES[kind]())
    const second = rig.replica()
    await second.opened()
    const alice = callerOf(rig)
    const at = async (one: ConnectionService) =>
      (await one.accounts.current(alice, 'github', 'access_token')).token.reveal()
    const isMissing = (one: ConnectionService) =>
      vi.waitFor(() => expect(at(one)).rejects.toMatchObject({ code: 'not_connected' }), { timeout: 2_000 })
    return { rig, second, alice, at, isMissing }
  }
  async function connected() {
    const world = await startTwo()
    const { rig, alice } = world
    await connect(rig, new Browser(), (await rig.links.link(alice, 'code', MISSING)).url)
    return world
  }
  /** The token endpoint answers with new tokens after `release`. */
  function holdRefresh({ service }: Awaited<ReturnType<typeof startRig>>) {
    const { promise: after, resolve: release } = Promise.withResolvers<void>()
    const body = { access_token: 'refreshed', refresh_token: 'next', token_type: 'Bearer', expires_in: 3600 }
    service.token = ({ form }) => (form['grant_type'] === 'refresh_token' ? { body, after } : undefined)
    return { release, asked: () => service.asked.filter(({ form }) => form['grant_type'] === 'refresh_token').length }
  }

  it('50 calls of one person at both get one link, and it is completed at the other', async () => {
    const { rig, second, alice, at } = await startTwo()
    const others = second.links(new Map())
    const links = await Promise.all(
      Array.from({ length: 50 }, (_, index) => (index % 2 === 0 ? rig.links : others).link(alice, 'code', MISSING)),
    )
    expect(new Set(links.map(({ url }) => url)).size).toBe(1)
    const browser = new Browser()
    const consent = await asPerson(rig, browser, await browser.get(links[0]?.url ?? ''))
    rig.serve(second)
    await atService(rig, browser, await browser.press(consent, 'continue'))
    expect(await Promise.all([at(rig.main), at(second)])).toEqual([ACCESS, ACCESS])
  })

  it('50 calls at both refresh a due token once', async () => {
    const { rig, second, at } = await connected()
    const { release, asked } = holdRefresh(rig)
    release()
    rig.clock.advance(3600_000 - 30_000)
    const tokens = await Promise.all(Array.from({ length: 50 }, (_, index) => at(index % 2 === 0 ? rig.main : second)))
    expect(new Set(tokens)).toEqual(new Set(['refreshed']))
    expect(asked()).toBe(1)
  })

  it('a connection that ends during its refresh stays ended', async () => {
    const { rig, second, at, isMissing } = await connected()
    const { release, asked } = holdRefresh(rig)
    rig.clock.advance(3600_000)
    const outcome = at(rig.main).catch((error: unknown) => asFailure(error).code)
    await vi.waitFor(() => expect(asked()).toBe(1))
    expect(await second.disconnect({ issuer: rig.people.url, subject: SUBJECT })).toBe(1)
    release()
    expect(await outcome).toBe('not_connected')
    await isMissing(rig.main)
    await isMissing(second)
  })

  it('a connection that is replaced during its refresh is the new one', async () => {
    const { rig, second, alice, at } = await connected()
    const { release, asked } = holdRefresh(rig)
    rig.clock.advance(3600_000)
    const refreshing = at(rig.main).catch(() => 'rejected')
    await vi.waitFor(() => expect(asked()).toBe(1))
    rig.serve(second)
    const { url } = await second.links(new Map()).link(alice, 'code', MISSING)
    expect((await connect(rig, new Browser(), url)).html).toContain('is connected')
    release()
    await refreshing
    await vi.waitFor(async () => expect([await at(rig.main), await at(second)]).toEqual([ACCESS, ACCESS]))
  })
})

it('Redis has no token, no person and no link in clear text', async () => {
  const rig = await startRig(sockets, STORES.Redis())
  const { url } = await rig.links.link(callerOf(rig), 'code', MISSING)
  const dump = async (): Promise<string> => {
    const texts: string[] = []
    for (const key of (await redis('keys', '*')) as string[]) {
      const type = await redis('type', key)
      texts.push(key, String(type === 'string' ? await redis('get', key) : await redis('dump', key)))
    }
    return texts.join('\n')
  }
  const before = await dump()
  await connect(rig, new Browser(), url)
  const after = await dump()
  expect(after.length).toBeGreaterThan(500)
  for (const secret of [ACCESS, REFRESH, SUBJECT, 'one@example.com', url.slice(-32)])
    expect(before + after).not.toContain(secret)
})
