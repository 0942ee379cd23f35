import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import type { RedisConfig } from '../../../src/storage/index.ts'
import { startDeployment, type Deployment } from '../../support/redis/deployment.ts'
import { createTestSecrets } from '../../support/ports.ts'
import { startRespServer } from '../../support/redis/resp.ts'
import { createReplica, newScope, type Replica } from '../../support/storage/redis-world.ts'
import { bytes } from '../../support/storage/worlds.ts'

let deployment: Deployment
const cleanups: (() => Promise<unknown>)[] = []

beforeAll(async () => {
  deployment = await startDeployment()
}, 180_000)
afterAll(() => deployment.close())
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup()
})

function replicaOf(overrides: Partial<RedisConfig>): Replica {
  const replica = createReplica(deployment.config(overrides), newScope())
  cleanups.push(() => replica.stores.close())
  return replica
}

/** The line of the log about a store that cannot be used. */
async function failureOf(replica: Replica): Promise<unknown> {
  await expect(replica.store.put('a', bytes('1'), 60_000)).rejects.toThrow('store')
  const line = replica.log.lines.find((one) => one.includes('store unavailable'))
  return JSON.parse(line ?? '{}')
}

it('a name of a sentinel that is not resolved is said, with the name', async () => {
  const replica = replicaOf({ sentinels: [{ host: 'sentinel.invalid', port: 26_379 }] })
  expect(await failureOf(replica)).toMatchObject({ cause: 'name_not_resolved', host: 'sentinel.invalid', port: 26_379 })
  expect(replica.metrics.value('extauth_store_failures_total', 'name_not_resolved')).toBe(1)
  expect(replica.store.health().detail).toBe('the names of the sentinels have no address')
})

it('a sentinel that wants a password is said, with its address', async () => {
  const sentinel = await startRespServer(() => '-NOAUTH Authentication required.')
  cleanups.push(() => sentinel.close())
  const { port } = sentinel
  const replica = replicaOf({ sentinels: [{ host: '127.0.0.1', port }] })
  expect(await failureOf(replica)).toMatchObject({ cause: 'NOAUTH', host: '127.0.0.1', port })
  expect(replica.store.health().detail).toBe('a sentinel rejects the query (NOAUTH)')
})

it('a password that the master refuses is said, with its address', async () => {
  const password = createTestSecrets({ wrong: 'wrong' }).get('wrong')
  const replica = replicaOf({ password })
  expect(await failureOf(replica)).toMatchObject({ cause: 'WRONGPASS', port: deployment.nodes[0]?.port })
})

it('a name of a master that is not resolved is said, with the name', async () => {
  const sentinel = await startRespServer((words) =>
    words[1] === 'get-master-addr-by-name' ? ['master.invalid', '6379'] : [],
  )
  cleanups.push(() => sentinel.close())
  const replica = replicaOf({ sentinels: [{ host: '127.0.0.1', port: sentinel.port }] })
  expect(await failureOf(replica)).toMatchObject({ cause: 'name_not_resolved', host: 'master.invalid', port: 6379 })
})
