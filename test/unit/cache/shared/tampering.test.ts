import { expect, it } from 'vitest'
import { createMemoryStore } from '../../../../src/storage/index.ts'
import { createManualClock, createRecordingLog } from '../../../support/ports.ts'
import { createFleetReplica, createProvider, keyOf, settle } from '../../../support/cache/shared/fleet.ts'

async function createWorld() {
  const clock = createManualClock()
  const provider = createProvider()
  const store = createMemoryStore({ clock, log: createRecordingLog() })
  const replica = () => createFleetReplica(store, { clock, provider })
  const token = await replica().get('alice')
  await settle()
  const record = `credential:${keyOf('alice')}`
  const stored = (await store.get(record))?.value ?? Buffer.alloc(0)
  return { clock, provider, store, replica, token, record, stored }
}

it('a value with any byte changed in the store is never used, and no caller gets an error', async () => {
  const { provider, store, replica, token, record, stored } = await createWorld()
  expect(stored.length).toBeGreaterThan(100)
  for (let at = 0; at < stored.length; at += 1) {
    const changed = Buffer.from(stored)
    changed[at] = (changed[at] ?? 0) ^ 0x01
    await store.put(record, changed, 60_000)
    expect(await replica().get('alice'), `byte ${at}`).not.toBe(token)
  }
  expect(provider.calls).toHaveLength(1 + stored.length)
})

it('a value that was moved to another caller’s key is never used', async () => {
  const { provider, store, replica, stored } = await createWorld()
  await store.put(`credential:${keyOf('bob')}`, stored, 60_000)
  expect(await replica().get('bob')).toContain('of-bob')
  expect(provider.calls).toEqual(['alice', 'bob'])
})

it('an old value that is put back after a purge is not used', async () => {
  const { store, replica, token, record, stored } = await createWorld()
  await replica().shared.purge({ subject: 'alice' })
  await store.put(record, stored, 60_000)
  expect(await replica().get('alice')).not.toBe(token)
})

it.each([
  ['cut short', (value: Buffer) => value.subarray(0, 20)],
  ['emptied', () => Buffer.alloc(0)],
  ['noise', () => Buffer.alloc(300, 7)],
])('a value that was %s is fetched again', async (_name, change) => {
  const { store, replica, token, record, stored } = await createWorld()
  await store.put(record, change(stored), 60_000)
  const next = await replica().get('alice')
  expect(next).not.toBe(token)
  await settle()
  expect(await replica().get('alice'), 'and shared again').toBe(next)
})

it('a record of purges that was damaged counts as a purge of everything for who starts then', async () => {
  const { clock, store, replica, token } = await createWorld()
  clock.advance(1_000)
  await store.put('purges', Buffer.alloc(100, 7), 60_000)
  const next = await replica().get('alice')
  expect(next).not.toBe(token)
  await settle()
  expect(await replica().get('alice')).toBe(next)
})
