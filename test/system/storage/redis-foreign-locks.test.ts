import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest'
import { startDeployment, type Deployment } from '../../support/redis/deployment.ts'
import { operate } from '../../support/redis/operator.ts'
import { createReplica, newScope, type Replica } from '../../support/storage/redis-world.ts'
import { bytes } from '../../support/storage/worlds.ts'

// A lost lock belongs to its next holder.

let deployment: Deployment
const replicas: Replica[] = []

beforeAll(async () => {
  deployment = await startDeployment()
}, 180_000)
afterAll(() => deployment.close())
afterEach(async () => {
  for (const { stores } of replicas.splice(0)) await stores.close()
})

const redis = (...words: string[]) => operate(deployment.nodes[0]?.port ?? 0, words)

/** A replica that lost its lock to the other without noticing. */
async function createWorld(ttlMs: number) {
  const scope = newScope()
  const [late, other] = [createReplica(deployment.config(), scope), createReplica(deployment.config(), scope)]
  replicas.push(late, other)
  const key = `extauth:{${scope}}:l:a`
  const lose = async () => void (await redis('del', key))
  return { late: late.store, other: other.store, key, lose, ttlMs }
}

it('a late release does not release another’s lock', async () => {
  const { late, other, lose, ttlMs } = await createWorld(30_000)
  const lost = await late.lock('a', { ttlMs, waitMs: 0 })
  await lose()
  const held = await other.lock('a', { ttlMs, waitMs: 0 })
  expect(held?.fence).toBeGreaterThan(lost?.fence ?? Infinity)
  await lost?.release()
  expect(await late.lock('a', { ttlMs, waitMs: 0 })).toBeUndefined()
})

it('a late write does not release another’s lock', async () => {
  const { late, other, lose, ttlMs } = await createWorld(30_000)
  const lost = await late.getOrLock('a', undefined, ttlMs)
  await lose()
  expect((await other.getOrLock('a', undefined, ttlMs)).kind).toBe('lock')
  if (lost.kind === 'lock') await lost.held.finish(bytes('late'), 60_000)
  const version = (await other.get('a'))?.version
  expect((await late.getOrLock('a', version, ttlMs)).kind).toBe('busy')
})

it('who lost a lock does not renew it for another', async () => {
  const { late, key, lose } = await createWorld(0)
  const lost = await late.lock('a', { ttlMs: 900, waitMs: 0 })
  await lose()
  await redis('set', key, '1:another', 'PX', '60000')
  await vi.waitFor(() => expect(lost?.isHeld).toBe(false), { timeout: 10_000 })
  expect(Number(await redis('pttl', key)), 'as the other set it').toBeGreaterThan(30_000)
})
