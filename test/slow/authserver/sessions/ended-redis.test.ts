import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { createTestSecrets } from '../../../support/ports.ts'
import { APPLICATION_RULES } from '../../../support/redis/acl.ts'
import { startDeployment, type Deployment } from '../../../support/redis/deployment.ts'
import { operate } from '../../../support/redis/operator.ts'
import { createReplica, newScope } from '../../../support/storage/redis-world.ts'
import { createRig, TSID } from '../../../support/authserver/sessions/rig.ts'

let deployment: Deployment
const cleanups: (() => unknown)[] = []

beforeAll(async () => {
  deployment = await startDeployment()
}, 180_000)
afterAll(() => deployment.close())
afterEach(async () => {
  vi.useRealTimers()
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup()
})

const redis = (...words: string[]) => operate(deployment.nodes[0]?.port ?? 0, words)
const settled = { timeout: 20_000, interval: 50 }
const code = (expected: string) => expect.objectContaining({ code: expected })

function createWorld() {
  const [rig, scope] = [createRig(), newScope()]
  const join = async (options: { readonly user?: string; readonly hmac?: readonly string[] } = {}) => {
    const { user } = options
    const secrets = createTestSecrets({ name: user ?? '', password: 'password' })
    const of = user === undefined ? {} : { username: secrets.get('name'), password: secrets.get('password') }
    const { store, stores } = createReplica(deployment.config(of), scope)
    cleanups.push(() => stores.close())
    const sessions = await rig.replica(store, options.hmac)
    cleanups.push(() => sessions.close())
    return sessions
  }
  return { ...rig, join, key: (name: string) => `extauth:{${scope}}:v:${name}` }
}

async function createUser(name: string, without: string) {
  const rules = APPLICATION_RULES.split(' ').filter((rule) => rule !== without)
  await redis('acl', 'setuser', name, 'reset', 'on', '>password', 'resetchannels', ...rules)
  cleanups.push(() => redis('acl', 'deluser', name))
}

describe('a replica that may not subscribe', () => {
  it('refuses within seconds a session that another replica revoked', async () => {
    const world = createWorld()
    await createUser('deaf', '+subscribe')
    const [one, deaf] = [await world.join(), await world.join({ user: 'deaf' })]
    await world.login(one)
    expect(deaf.isEnded(TSID)).toBe(false)
    await one.end(TSID)
    await vi.waitFor(() => expect(deaf.isEnded(TSID)).toBe(true), { timeout: 5_000, interval: 50 })
  }, 30_000)

  it('and after ten seconds may not read either, knows nothing any more', async () => {
    const { join } = createWorld()
    await createUser('deaf', '+subscribe')
    const deaf = await join({ user: 'deaf' })
    expect(deaf.isEnded(TSID)).toBe(false)
    await redis('acl', 'setuser', 'deaf', '-get')
    await expect.poll(() => probe(deaf), { ...settled, timeout: 30_000 }).toEqual(code('store_unavailable'))
    await redis('acl', 'setuser', 'deaf', '+get')
    await expect.poll(() => probe(deaf), settled).toBe(false)
  }, 60_000)
})

const probe = (sessions: { isEnded(tsid: string): boolean }): unknown => {
  try {
    return sessions.isEnded(TSID)
  } catch (error) {
    return error
  }
}

describe('the list of ended sessions', () => {
  it.each([
    ['a list', (key: string) => redis('rpush', key, 'a')],
    ['too short', (key: string) => redis('set', key, 'a')],
    ['noise', (key: string) => redis('set', key, 'ü'.repeat(100))],
  ])(
    'that is %s at all its keys ends no login, and takes sessions again',
    async (_name, harm) => {
      const world = createWorld()
      for (let part = 0; part < 16; part += 1) await harm(world.key(`ended:${part}`))
      const one = await world.join()
      await world.login(one)
      expect(await world.access(one)).toBe('access-0')
      await one.end(TSID)
      const late = await world.join()
      expect(late.isEnded(TSID)).toBe(true)
    },
    30_000,
  )

  it('is sealed with the first secret within a minute of a rotation', async () => {
    const world = createWorld()
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    const old = await world.join()
    await world.login(old)
    await old.end(TSID)
    const rotated = await world.join({ hmac: ['next', 'hmac'] })
    expect(rotated.isEnded(TSID)).toBe(true)
    await old.close()
    vi.advanceTimersByTime(60_000)
    await expect
      .poll(async () => (await world.join({ hmac: ['next'] })).isEnded(TSID), { ...settled, interval: 500 })
      .toBe(true)
  }, 30_000)
})
