import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { startDeployment, type Deployment } from '../../support/redis/deployment.ts'
import { operate } from '../../support/redis/operator.ts'
import { createReplica, newScope, type Replica } from '../../support/storage/redis-world.ts'
import { bytes } from '../../support/storage/worlds.ts'

// Data that the product did not write: it counts as missing and is overwritten, and no operation fails because of it.

let deployment: Deployment
const replicas: Replica[] = []

beforeAll(async () => {
  deployment = await startDeployment()
}, 180_000)
afterAll(() => deployment.close())
afterEach(async () => {
  for (const { stores } of replicas.splice(0)) await stores.close()
})

const redis = (...words: (string | Buffer)[]) => operate(deployment.nodes[0]?.port ?? 0, words)

function createWorld() {
  const scope = newScope()
  const replica = createReplica(deployment.config(), scope)
  replicas.push(replica)
  const key = (name: string) => `extauth:{${scope}}:${name}`
  return { ...replica, key }
}

type Harm = (key: string) => Promise<unknown>
const WRITTEN: readonly (readonly [string, Harm])[] = [
  ['empty', (key) => redis('set', key, '')],
  ['a few bytes', (key) => redis('set', key, 'short')],
  ['27 bytes', (key) => redis('set', key, 'v'.repeat(27))],
  ['noise with bytes above 0x7f in its version', (key) => redis('set', key, Buffer.alloc(200, 0xc3))],
  ['noise with a version of zero bytes', (key) => redis('set', key, Buffer.alloc(200))],
  ['a list', (key) => redis('rpush', key, 'a', 'b')],
  ['a hash', (key) => redis('hset', key, 'a', 'b')],
  ['a sorted set', (key) => redis('zadd', key, '1', 'a')],
]

describe('a record that is', () => {
  it.each(WRITTEN)('%s is replaced by compareAndSet', async (_name, harm) => {
    const { store, key } = createWorld()
    await harm(key('v:a'))
    const found = await store.get('a')
    expect(await store.compareAndSet('a', found?.version, bytes('new'), 60_000)).toBe(true)
    expect((await store.get('a'))?.value).toEqual(bytes('new'))
  })

  it.each(WRITTEN)('%s is replaced by compareAndSet with a fence', async (_name, harm) => {
    const { store, key } = createWorld()
    await harm(key('v:a'))
    const found = await store.get('a')
    const held = await store.lock('a', { ttlMs: 5_000, waitMs: 0 })
    expect(await store.compareAndSet('a', found?.version, bytes('new'), 60_000, held?.fence)).toBe(true)
    await held?.release()
  })

  it.each(WRITTEN)('%s gives the lock to make it, and takes what is made', async (_name, harm) => {
    const { store, key } = createWorld()
    await harm(key('v:a'))
    const seen = await store.getOrLock('a', undefined, 5_000)
    const claim = seen.kind === 'value' ? await store.getOrLock('a', seen.stored.version, 5_000) : seen
    expect(claim.kind).toBe('lock')
    if (claim.kind === 'lock') await claim.held.finish(bytes('new'), 60_000)
    expect((await store.get('a'))?.value).toEqual(bytes('new'))
  })

  it.each(WRITTEN)('%s is taken, put and deleted like any other', async (_name, harm) => {
    const { store, key } = createWorld()
    await harm(key('v:a'))
    await store.take('a')
    expect(await store.putIfAbsent('a', bytes('new'), 60_000)).toBe(true)
    await harm(key('v:b'))
    await store.put('b', bytes('new'), 60_000)
    expect((await store.get('b'))?.value).toEqual(bytes('new'))
    await harm(key('v:c'))
    await store.delete('c')
    expect(await store.get('c')).toBeUndefined()
  })
})

describe('a lock that is', () => {
  it.each([
    ...WRITTEN,
    ['of another form', (key: string) => redis('set', key, 'fence:owner', 'PX', '60000')],
    ['held for ever', (key: string) => redis('set', key, '5:owner')],
    ['of a fence that no number holds', (key: string) => redis('set', key, `${'9'.repeat(40)}:o`, 'PX', '60000')],
    ['of a fence beside which there is none', (key: string) => redis('set', key, '9007199254740991:', 'PX', '60000')],
  ] as const)('%s is free', async (_name, harm) => {
    const { store, key } = createWorld()
    await harm(key('l:a'))
    const held = await store.lock('a', { ttlMs: 5_000, waitMs: 0 })
    expect(held?.fence).toBeGreaterThan(1_000_000_000_000_000)
    expect(await store.lock('a', { ttlMs: 5_000, waitMs: 0 }), 'held now').toBeUndefined()
    await held?.release()
    await harm(key('l:b'))
    expect((await store.getOrLock('b', undefined, 5_000)).kind).toBe('lock')
  })

  it('replaced by a list while it is held is not renewed, and released without an error', async () => {
    const { store, key } = createWorld()
    const claim = await store.getOrLock('a', undefined, 900)
    await redis('del', key('l:a'))
    await redis('rpush', key('l:a'), 'a')
    if (claim.kind !== 'lock') throw new RangeError(claim.kind)
    await expect.poll(() => claim.held.isHeld, { timeout: 5_000 }).toBe(false)
    await claim.held.finish(bytes('new'), 60_000)
    expect((await store.get('a'))?.value).toEqual(bytes('new'))
  })
})

describe('a bounded collection', () => {
  const bound = { members: 2, bytes: 1_000 }

  it.each(['new', 'used', 'bytes'])('whose set %s is of another type takes members', async (set) => {
    const { store, key } = createWorld()
    await redis('set', key(`c:some:${set}`), 'text')
    expect(await store.admit('some', 'm1', bytes('1'), 60_000, bound)).toMatchObject({ outcome: 'added', members: 1 })
    await redis('del', key(`c:some:${set}`))
    await redis('set', key(`c:some:${set}`), 'text')
    await store.touch('some', 'm1', 60_000)
    await redis('del', key(`c:some:${set}`))
    await redis('set', key(`c:some:${set}`), 'text')
    await store.remove('some', 'm1')
    expect(await store.get('m1')).toBeUndefined()
  })
})

it('data of another type are logged with their key, once a minute', async () => {
  const { store, key, log } = createWorld()
  await redis('rpush', key('v:ended:3'), 'a')
  await store.get('ended:3')
  await store.get('ended:3')
  const lines = log.lines.filter((line) => line.includes('store key is not a string'))
  expect(lines).toHaveLength(1)
  expect(lines[0]).toContain(key('v:ended:3'))
})
