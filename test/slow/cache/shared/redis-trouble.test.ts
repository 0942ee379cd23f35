import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { createManualClock, createTestSecrets, type ManualClock } from '../../../support/ports.ts'
import { APPLICATION_RULES } from '../../../support/redis/acl.ts'
import { startDeployment, type Deployment } from '../../../support/redis/deployment.ts'
import { operate } from '../../../support/redis/operator.ts'
import { createReplica, newScope } from '../../../support/storage/redis-world.ts'
import {
  createFleetReplica,
  createProvider,
  createTestSeal,
  keyOf,
  SEALING,
  type Provider,
} from '../../../support/cache/shared/fleet.ts'

// Several replicas on a Redis that holds invalid data, refuses some commands, or has no connection left.

let deployment: Deployment
const cleanups: (() => unknown)[] = []

beforeAll(async () => {
  deployment = await startDeployment()
}, 180_000)
afterAll(() => deployment.close())
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup()
})

const redis = (...words: (string | Buffer)[]) => operate(deployment.nodes[0]?.port ?? 0, words)
const settled = { timeout: 20_000, interval: 50 }

/** Commands that Redis processed in `ms`. */
async function commandsIn(ms: number): Promise<number> {
  const count = async () => Number(/total_commands_processed:(\d+)/.exec(String(await redis('info', 'stats')))?.[1])
  const before = await count()
  await new Promise((resolve) => setTimeout(resolve, ms))
  return (await count()) - before
}

interface Options {
  readonly clock?: ManualClock
  readonly provider?: Provider
  readonly seal?: string[]
  readonly user?: string
}

function createWorld() {
  const [clock, provider, scope] = [createManualClock(), createProvider(), newScope()]
  const join = (options: Options = {}) => {
    const { user } = options
    const secrets = createTestSecrets({ name: user ?? '', password: 'password' })
    const stores = createReplica(
      deployment.config(user === undefined ? {} : { username: secrets.get('name'), password: secrets.get('password') }),
      scope,
    )
    const of = options.clock ?? clock
    const replica = createFleetReplica(stores.store, {
      clock: of,
      provider,
      budgetMs: 5_000,
      seal: createTestSeal(of, ...(options.seal ?? [SEALING])),
    })
    cleanups.push(async () => {
      replica.shared.close()
      await stores.stores.close()
    })
    return Object.assign(replica, { remarks: () => stores.stores.states().flatMap(({ remarks }) => remarks) })
  }
  return { clock, provider, join, key: (name: string) => `extauth:{${scope}}:${name}` }
}

async function createUser(name: string, change: (rules: readonly string[]) => readonly string[]) {
  const rules = change(APPLICATION_RULES.split(' '))
  await redis('acl', 'setuser', name, 'reset', 'on', '>password', 'resetchannels', ...rules)
  cleanups.push(() => redis('acl', 'deluser', name))
}

describe('a replica that receives no messages', () => {
  const silenced = {
    'because its user may not subscribe': async (world: ReturnType<typeof createWorld>) => {
      await createUser('deaf', (rules) => rules.filter((rule) => rule !== '+subscribe'))
      return world.join({ user: 'deaf' })
    },
    'because the connection table is full': async (world: ReturnType<typeof createWorld>) => {
      const count = async () =>
        String(await redis('client', 'list'))
          .trim()
          .split('\n').length
      const first = world.join()
      await first.get('warm')
      await expect.poll(async () => String(await redis('client', 'list')), settled).toMatch(/cmd=subscribe/)
      // One more than now: the commands of the next replica, but not its messages; the operator needs one as well.
      const clients = await count()
      await redis('config', 'set', 'maxclients', String(Math.max(clients, 2)))
      cleanups.push(() => vi.waitFor(() => redis('config', 'set', 'maxclients', '1000'), settled))
      const deaf = world.join()
      await deaf.get('warm')
      return deaf
    },
  }

  it.each(Object.entries(silenced))(
    '%s forgets what others purge within seconds, and says so',
    async (_name, open) => {
      const world = createWorld()
      const first = world.join()
      const token = await first.get('alice')
      await expect.poll(() => first.shared.purge({ subject: 'other' }), settled).toBeGreaterThan(0)
      const deaf = await open(world)
      expect(await deaf.get('alice')).toBe(token)
      await expect
        .poll(() => deaf.remarks().join('\n'), settled)
        .toContain('messages of other replicas are not received')
      world.clock.advance(1_000)
      const purged = first.cache.purge({ subject: 'alice' })
      expect(await purged.notified).toBeGreaterThan(0)
      await vi.waitFor(async () => expect(await deaf.get('alice')).not.toBe(token), { timeout: 5_000, interval: 50 })
    },
    60_000,
  )

  it('says how many processes received a purge', async () => {
    const world = createWorld()
    const [first] = [world.join(), world.join(), world.join()]
    await expect.poll(() => first?.shared.purge({ subject: 'alice' }), settled).toBe(3)
  })
})

describe('a sealing secret that is removed after a rotation', () => {
  const NEXT = 'the-next-sealing-secret-with-32-bytes'

  it('ends nothing: the record of purges is sealed with the first secret within a minute', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    try {
      const { clock, join } = createWorld()
      const rotated = join({ seal: [NEXT, SEALING] })
      const old = join({ seal: [SEALING, NEXT] })
      await old.get('alice')
      await old.shared.purge({ subject: 'bob' })
      await rotated.get('alice')
      await expect
        .poll(
          async () => {
            clock.advance(60_000)
            vi.advanceTimersByTime(60_000)
            const late = join({ seal: [NEXT] })
            await late.get('alice')
            return late.count('alone')
          },
          { ...settled, interval: 500 },
        )
        .toBe(0)
    } finally {
      vi.useRealTimers()
    }
  }, 60_000)

  it('at once costs some minutes of sharing, not two days', async () => {
    const { clock, join } = createWorld()
    const old = join()
    await old.get('alice')
    old.shared.close()
    const [one, other] = [join({ seal: [NEXT] }), join({ seal: [NEXT] })]
    await Promise.all([one.get('alice'), other.get('alice')])
    expect(one.shared.problem).toContain('sealed with a secret that is not configured')
    clock.advance(6 * 60_000)
    await expect.poll(() => [one.shared.problem, other.shared.problem], settled).toEqual([undefined, undefined])
    const token = await one.get('carol')
    await expect.poll(async () => (await other.get('carol')) === token, settled).toBe(true)
  }, 60_000)
})

describe('invalid data', () => {
  const invalid: Readonly<Record<string, (key: string) => Promise<unknown>>> = {
    empty: (key) => redis('set', key, ''),
    short: (key) => redis('set', key, 'short'),
    'noise above 0x7f': (key) => redis('set', key, Buffer.alloc(300, 0xc3)),
    'text without a time to live': (key) => redis('set', key, 'x'.repeat(300)),
    'of another owner, for ever': (key) => redis('set', key, '5:owner'),
    'a list': (key) => redis('rpush', key, 'a'),
    'a hash': (key) => redis('hset', key, 'a', 'b'),
  }

  it.each(Object.entries(invalid))(
    '(%s) as credential, lock or record of purges costs a call and no loop',
    async (_name, write) => {
      const { join, key, provider } = createWorld()
      const of = (subject: string) => `credential:${keyOf(subject)}`
      await write(key('v:purges'))
      const replica = join()
      await replica.get('first')
      await redis('del', key('v:purges'))
      await write(key('v:purges'))
      await write(key(`v:${of('alice')}`))
      await write(key(`l:${of('bob')}`))
      const startedAt = performance.now()
      const tokens = await Promise.all(['alice', 'bob'].map((subject) => replica.get(subject)))
      expect(performance.now() - startedAt).toBeLessThan(2_500)
      expect(tokens).toEqual([expect.stringContaining('of-alice'), expect.stringContaining('of-bob')])
      expect(provider.calls).toHaveLength(3)
      expect(replica.count('made')).toBe(3)
      expect(await replica.shared.purge({ subject: 'alice' })).toBeDefined()
      const other = join()
      expect(await other.get('bob'), 'shared again').toBe(tokens[1])
      expect(await commandsIn(1_000)).toBeLessThan(100)
    },
    30_000,
  )
})

describe('a lock that another replica holds', () => {
  it('leaves time for a call of one’s own', async () => {
    const { join, key, provider } = createWorld()
    const replica = join()
    await replica.get('first')
    await redis('set', key(`l:credential:${keyOf('alice')}`), '5:owner', 'PX', '60000')
    expect(await replica.get('alice')).toContain('of-alice')
    const endsAt = provider.ends.at(-1) ?? 0
    expect(endsAt - performance.now()).toBeGreaterThan(2_000)
  }, 30_000)
})

describe('a store that refuses some commands', () => {
  it.each(['+time', '+evalsha', '+get', '+set'])(
    'without %s is left, with the reason',
    async (right) => {
      const world = createWorld()
      await createUser('limited', (rules) =>
        rules.filter((rule) => rule !== right && !(right === '+evalsha' && rule === '+eval')),
      )
      const replica = world.join({ user: 'limited' })
      for (const subject of ['a', 'b', 'c', 'd', 'e']) expect(await replica.get(subject)).toContain(`of-${subject}`)
      await expect.poll(() => replica.shared.problem, settled).toContain('lacks a permission')
    },
    30_000,
  )

  it('is noticed beside hits: out of memory', async () => {
    const { join } = createWorld()
    const [first, second] = [join(), join()]
    for (let n = 0; n < 12; n += 1) await first.get(`hit-${n}`)
    await redis('config', 'set', 'maxmemory', '1')
    cleanups.push(() => redis('config', 'set', 'maxmemory', '0'))
    for (let n = 0; n < 6; n += 1) {
      await second.get(`hit-${n}`)
      await second.get(`miss-${n}`)
    }
    await expect.poll(() => second.shared.problem, settled).toContain('memory is full')
  }, 30_000)
})
