import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { createTestSecrets } from '../../support/ports.ts'
import { APPLICATION_RULES } from '../../support/redis/acl.ts'
import { startDeployment, type Deployment } from '../../support/redis/deployment.ts'
import { operate } from '../../support/redis/operator.ts'
import { createReplica, newScope, type Replica } from '../../support/storage/redis-world.ts'
import { bytes } from '../../support/storage/worlds.ts'

let deployment: Deployment
const replicas: Replica[] = []

beforeAll(async () => {
  deployment = await startDeployment({ replicas: 1 })
  const isOnline = async () => String(await operate(port(), ['info', 'replication'])).includes('state=online')
  await vi.waitFor(async () => expect(await isOnline()).toBe(true), { timeout: 30_000, interval: 50 })
}, 180_000)
afterAll(() => deployment.close())
afterEach(async () => {
  for (const { stores } of replicas.splice(0)) await stores.close()
})

const port = () => deployment.nodes[0]?.port ?? 0

/** Everything that the product ever does with a store, by a user with these rules; gives what Redis refused it. */
async function refusals(rules: readonly string[]): Promise<string[]> {
  await operate(port(), ['acl', 'deluser', 'probe'])
  await operate(port(), ['acl', 'setuser', 'probe', 'on', '>probe', 'resetchannels', ...rules])
  await operate(port(), ['acl', 'log', 'reset'])
  await operate(port(), ['script', 'flush'])
  const secrets = createTestSecrets({ username: 'probe', password: 'probe' })
  const overrides = { username: secrets.get('username'), password: secrets.get('password'), db: 1, waitReplicas: 1 }
  const replica = createReplica(
    deployment.config({ ...overrides, readTimeoutMs: 1_000, writeTimeoutMs: 1_000 }),
    newScope(),
  )
  replicas.push(replica)
  const errors = await everything(replica)
  await replica.stores.close()
  const log = await operate(port(), ['acl', 'log'])
  return [...errors, ...(Array.isArray(log) ? log.map((entry) => String(entry)) : [])]
}

async function everything({ store }: Replica): Promise<string[]> {
  const errors: string[] = []
  const attempt = (work: Promise<unknown>) => work.catch((error: unknown) => void errors.push(String(error)))
  let gaps = 0
  let heard = 0
  const listener = { onMessage: () => (heard += 1), onGap: () => (gaps += 1) }
  const [one, other] = [store.subscribe('one', listener), store.subscribe('other', listener)]
  await attempt(store.put('a', bytes('1'), 60_000))
  if (errors.length > 0) return errors
  await attempt(store.get('a'))
  await attempt(store.take('a'))
  await attempt(store.delete('a'))
  await attempt(store.compareAndSet('b', undefined, bytes('1'), 60_000))
  for (const key of ['m1', 'm2', 'm3'])
    await attempt(store.admit('c', key, bytes('1'), 60_000, { members: 2, bytes: 1_000 }))
  await attempt(store.touch('c', 'm3', 90_000))
  await attempt(store.remove('c', 'm3'))
  // A denied command needs no lock, whose renewal takes real time.
  if (errors.length > 0) return errors
  const held = await store
    .lock('l', { ttlMs: 1_500, waitMs: 0 })
    .catch((error: unknown) => void errors.push(String(error)))
  await new Promise((resolve) => setTimeout(resolve, 600))
  if (held?.isHeld !== true) errors.push('the lock was not renewed')
  await held?.release()
  const next = await store.lock('l', { ttlMs: 1_500, waitMs: 0 }).catch(() => undefined)
  if (next === undefined) errors.push('the lock was not released')
  await next?.release()
  await attempt(expect.poll(() => gaps, { timeout: 1_000 }).toBeGreaterThan(1))
  await attempt(store.publish('one', 'text'))
  await attempt(expect.poll(() => heard, { timeout: 1_000 }).toBe(1))
  const before = gaps
  one.close()
  await new Promise((resolve) => setTimeout(resolve, 100))
  if (gaps > before) errors.push('the connection was lost by closing a subscription')
  other.close()
  return errors
}

describe('the rights of the user in Redis', () => {
  const rules = APPLICATION_RULES.split(' ')

  it('as the docs have them are enough', async () => {
    expect(await refusals(rules)).toEqual([])
  })

  it.each(rules)('need %s', async (rule) => {
    expect(await refusals(rules.filter((other) => other !== rule))).not.toEqual([])
  })

  it('are not those of a reader of others’ keys or of an administrator', () => {
    expect(rules.filter((rule) => rule.startsWith('+@') || rule === '~*' || rule === 'allkeys')).toEqual([])
  })
})
