import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { createTestSecrets } from '../../support/ports.ts'
import { APPLICATION_RULES } from '../../support/redis/acl.ts'
import { OPERATOR, startDeployment, type Deployment } from '../../support/redis/deployment.ts'
import { createReplica, newScope, type Replica } from '../../support/storage/redis-world.ts'
import { bytes } from '../../support/storage/worlds.ts'

const PASSWORD = 'password-of-the-default-user'

let deployment: Deployment
const replicas: Replica[] = []

beforeAll(async () => {
  // No sentinels: the operator triggers a failover.
  deployment = await startDeployment({ replicas: 1, sentinels: 0 })
}, 180_000)
afterAll(() => deployment.close())
afterEach(async () => {
  for (const { stores } of replicas.splice(0)) await stores.close()
})

const serverAt = (index: number) => ({ host: '127.0.0.1', port: deployment.nodes[index]?.port ?? 0 })

const replicaAt = (overrides: Parameters<Deployment['config']>[0] = {}): Replica => {
  const replica = createReplica(deployment.config({ server: serverAt(0), masterName: '', ...overrides }), newScope())
  replicas.push(replica)
  return replica
}

/** Says it to a server as its operator. */
async function operate(index: number, ...command: [string, ...string[]]): Promise<void> {
  const redis = new Redis({ ...serverAt(index), ...OPERATOR })
  try {
    await redis.call(...command)
  } finally {
    redis.disconnect()
  }
}

describe('a store at one address', () => {
  it('is used without anybody who names it', async () => {
    const { store, stores } = replicaAt()
    await store.put('a', bytes('1'), 60_000)
    expect((await store.get('a'))?.value).toEqual(bytes('1'))
    expect(store.health()).toMatchObject({ isUp: true })
    expect(stores.states()).toHaveLength(1)
  })

  it('takes the password of the default user where no name is configured', async () => {
    await operate(0, 'acl', 'setuser', 'default', 'on', `>${PASSWORD}`, ...APPLICATION_RULES.split(' '))
    const secrets = createTestSecrets({ password: PASSWORD, wrong: 'another-password' })
    const { store } = replicaAt({ username: undefined, password: secrets.get('password') })
    await store.put('a', bytes('1'), 60_000)
    expect((await store.get('a'))?.value).toEqual(bytes('1'))
    const refused = replicaAt({ username: undefined, password: secrets.get('wrong') })
    await expect(refused.store.get('a')).rejects.toMatchObject({ code: 'WRONGPASS' })
  })

  it('that is a replica is not used, and is named', async () => {
    const { store } = replicaAt({ server: serverAt(1) })
    await expect(store.get('a')).rejects.toMatchObject({ kind: 'unavailable' })
    expect(store.health()).toMatchObject({ isUp: false, detail: expect.stringContaining('not a master') as string })
  })

  it('is left within seconds when it becomes a replica, and used again when it is a master again', async () => {
    const { store } = replicaAt({ readTimeoutMs: 1_000, writeTimeoutMs: 1_000 })
    await store.put('a', bytes('1'), 600_000)
    await operate(0, 'replicaof', '127.0.0.1', String(serverAt(1).port))
    // Reads would continue for ever without a check that it is still a master.
    await expect.poll(() => store.health().isUp, { timeout: 30_000, interval: 200 }).toBe(false)
    await operate(0, 'replicaof', 'no', 'one')
    await expect.poll(() => store.health().isUp, { timeout: 30_000, interval: 200 }).toBe(true)
    await store.put('b', bytes('2'), 60_000)
    expect((await store.get('b'))?.value).toEqual(bytes('2'))
  }, 90_000)
})
