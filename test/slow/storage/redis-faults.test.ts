import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { freePort } from '../../../lab/index.ts'
import { type RedisConfig, StoreError } from '../../../src/storage/index.ts'
import { openParts } from '../../../src/storage/redis/parts.ts'
import { createRedisStore } from '../../../src/storage/redis/store.ts'
import {
  createManualClock,
  createRecordingLog,
  createRecordingMetrics,
  createTestSecrets,
} from '../../support/ports.ts'
import { APPLICATION, OPERATOR, startDeployment, type Deployment } from '../../support/redis/deployment.ts'
import { operate } from '../../support/redis/operator.ts'
import { startRedis } from '../../support/redis/server.ts'
import { createReplica, newScope, type Replica } from '../../support/storage/redis-world.ts'
import { atOnce, bytes } from '../../support/storage/worlds.ts'

let deployment: Deployment
const replicas: Replica[] = []
const cleanups: (() => unknown)[] = []

beforeAll(async () => {
  deployment = await startDeployment({ replicas: 1 })
}, 180_000)
afterAll(() => deployment.close())
afterEach(async () => {
  for (const { stores } of replicas.splice(0)) await stores.close()
  for (const cleanup of cleanups.splice(0)) await cleanup()
})

const replicaOf = (overrides: Parameters<Deployment['config']>[0] = {}): Replica => {
  const replica = createReplica(deployment.config(overrides), newScope())
  replicas.push(replica)
  return replica
}
const quick = { readTimeoutMs: 500, writeTimeoutMs: 500, dialTimeoutMs: 1_000 }
const becomes = (replica: Replica, isUp: boolean) =>
  vi.waitFor(() => expect(replica.store.health().isUp).toBe(isUp), { timeout: 15_000, interval: 20 })
/** With a master of its own that has no replica which the sentinel would put in its place. */
async function lonely() {
  const alone = await startDeployment()
  cleanups.push(() => alone.close())
  const config = alone.config(quick)
  const replica = createReplica(config, newScope())
  replicas.push(replica)
  const [node] = alone.nodes
  if (node === undefined) throw new Error('no master')
  return { replica, node, config }
}
/** A store that only the test uses, without background reads. */
function unwatched(config: RedisConfig) {
  const parts = openParts(config, {
    clock: createManualClock(),
    log: createRecordingLog(),
    metrics: createRecordingMetrics(),
    random: Math.random,
  })
  cleanups.push(() => parts.close())
  return createRedisStore(parts.plain, newScope(), () => Promise.resolve())
}
const master = () => {
  const [node] = deployment.nodes
  if (node === undefined) throw new Error('no master')
  return node
}

describe('a store that is not there', () => {
  it('at start: everything is refused at once until it comes, and then works without a restart', async () => {
    const port = await freePort()
    const replica = replicaOf({ sentinels: [{ host: '127.0.0.1', port }] })
    await expect(replica.store.get('a')).rejects.toThrow(StoreError)
    const startedAt = performance.now()
    await expect(replica.store.get('a')).rejects.toMatchObject({ kind: 'unavailable' })
    expect(performance.now() - startedAt).toBeLessThan(4_000)
    expect(replica.store.health()).toMatchObject({ isUp: false, kind: 'kvstore', detail: 'no sentinel responds' })
    const sentinel = await startRedis({
      port,
      isSentinel: true,
      config: [
        `sentinel monitor mymaster 127.0.0.1 ${master().port} 1`,
        `sentinel auth-user mymaster ${OPERATOR.username}`,
        `sentinel auth-pass mymaster ${OPERATOR.password}`,
      ],
    })
    cleanups.push(() => sentinel.close())
    await becomes(replica, true)
    await replica.store.put('a', bytes('1'), 60_000)
  })

  it('is not asked in a storm, and a loss is logged once', async () => {
    const replica = replicaOf({ sentinels: [{ host: '127.0.0.1', port: await freePort() }] })
    const attempts = () => replica.metrics.value('extauth_store_connects_total', 'commands', 'unavailable')
    await vi.waitFor(() => expect(attempts()).toBeGreaterThan(2), { timeout: 15_000, interval: 20 })
    const before = attempts()
    await atOnce(200, () => replica.store.get('a').catch(() => undefined))
    expect(attempts() - before).toBeLessThanOrEqual(1)
    expect(replica.log.lines.filter((line) => line.includes('store unavailable'))).toHaveLength(1)
  })
})

describe('a store that refuses', () => {
  it('a wrong password: refused, said by its code, and the next password is used without a restart', async () => {
    const secrets = createTestSecrets({ 'redis/username': APPLICATION.username, 'redis/password': 'wrong' })
    const password = secrets.get('redis/password')
    const replica = replicaOf({ password })
    await expect(replica.store.get('a')).rejects.toMatchObject({ kind: 'refused' })
    expect(replica.store.health().detail).toBe('the store rejects commands (WRONGPASS)')
    password.pending = APPLICATION.password
    await becomes(replica, true)
    const everything = replica.log.lines.join('\n') + replica.metrics.text()
    expect(everything).not.toMatch(/wrong|password-of-extauth/)
  })

  it('a password that can’t be read: nothing is sent, and it says so', async () => {
    const secrets = createTestSecrets({ 'redis/username': APPLICATION.username })
    const replica = replicaOf({ password: secrets.get('redis/password') })
    await expect(replica.store.get('a')).rejects.toMatchObject({ kind: 'unavailable' })
    expect(replica.store.health().detail).toBe('secret_unavailable')
  })

  it('writes, because it is read-only now: another master is looked for, and what was refused is done there', async () => {
    const { replica, node } = await lonely()
    await replica.store.put('a', bytes('1'), 60_000)
    const { port } = node
    await operate(port, ['replicaof', '127.0.0.1', '1'])
    await expect(replica.store.put('a', bytes('2'), 60_000)).rejects.toMatchObject({ kind: 'unavailable' })
    expect(replica.store.health().isUp).toBe(false)
    await operate(port, ['replicaof', 'no', 'one'])
    await becomes(replica, true)
    await replica.store.put('a', bytes('3'), 60_000)
    expect((await replica.store.get('a'))?.value).toEqual(bytes('3'))
  })

  it('because its memory is full: refused, and nothing is logged of the value', async () => {
    const replica = replicaOf()
    await replica.store.put('a', bytes('1'), 60_000)
    await operate(master().port, ['config', 'set', 'maxmemory', '1'])
    try {
      await expect(replica.store.put('a', bytes('private'), 60_000)).rejects.toMatchObject({ kind: 'refused' })
    } finally {
      await operate(master().port, ['config', 'set', 'maxmemory', '0'])
    }
    expect(replica.log.lines.join('\n')).not.toContain('private')
    expect(replica.metrics.value('extauth_store_operations_total', 'put', 'refused')).toBe(1)
  })
})

describe('a store that hangs', () => {
  it('costs each operation its deadline and no more, at most 2,000 wait, and all works again after it', async () => {
    const { replica, node, config } = await lonely()
    await replica.store.put('a', bytes('1'), 60_000)
    const store = unwatched(config)
    await store.put('a', bytes('1'), 60_000)
    node.pause()
    try {
      await expect(store.get('a')).rejects.toMatchObject({
        kind: 'timeout',
        limit: { unit: 'ms', setting: { of: 'the storage' } },
      })
      const startedAt = performance.now()
      const outcomes = await atOnce(2_100, () => store.get('a').catch((error: StoreError) => error.kind))
      expect(performance.now() - startedAt).toBeLessThan(5_000)
      expect(outcomes.filter((outcome) => outcome === 'overloaded')).toHaveLength(100)
      expect(new Set(outcomes)).toEqual(new Set(['timeout', 'overloaded']))
      // A silent connection times out.
      await becomes(replica, false)
    } finally {
      node.resume()
    }
    await becomes(replica, true)
    expect((await replica.store.get('a'))?.value).toEqual(bytes('1'))
  })
})

describe('writes that wait for replicas', () => {
  it('fail when too few follow, what was taken counts as taken, and reads go on meanwhile', async () => {
    const replica = replicaOf({ waitReplicas: 1, readTimeoutMs: 3_000 })
    await replica.store.put('code', bytes('1'), 60_000)
    await replica.store.put('other', bytes('1'), 60_000)
    const [, follower] = deployment.nodes
    follower?.pause()
    try {
      const taking = replica.store.take('code')
      let hasEnded = false
      taking.catch(() => (hasEnded = true))
      for (let reads = 0; reads < 20; reads += 1) await replica.store.get('other')
      expect(hasEnded, 'reads behind a write that waits').toBe(false)
      await expect(taking).rejects.toMatchObject({ kind: 'too_few_replicas' })
      expect(await replica.store.get('code')).toBeUndefined()
    } finally {
      follower?.resume()
    }
    await expect
      .poll(() => replica.store.put('code', bytes('2'), 60_000).then(() => 'written', String), { timeout: 15_000 })
      .toBe('written')
  })

  it('fail at once when the master wants more replicas than it has', async () => {
    const replica = replicaOf()
    await operate(master().port, ['config', 'set', 'min-replicas-to-write', '5'])
    try {
      await expect(replica.store.put('a', bytes('1'), 60_000)).rejects.toMatchObject({ kind: 'too_few_replicas' })
    } finally {
      await operate(master().port, ['config', 'set', 'min-replicas-to-write', '0'])
    }
  })
})
