import { afterEach, expect, test } from 'vitest'
import { createPointers, MOST_CONNECTIONS, MOST_PER_PERSON, type Pointer } from '../../../src/connections/pointers.ts'
import { connectionRef } from '../../../src/connections/owner.ts'
import { createMemoryStore, createSeal, createSealingKeys, type Store } from '../../../src/storage/index.ts'
import { Browser, textOf } from '../../support/authserver/browser.ts'
import { callerOf, connect, MISSING, startRig } from '../../support/connections/rig.ts'
import { createManualClock, createRecordingLog, createTestSecrets } from '../../support/ports.ts'
import { createSockets } from '../../support/sockets.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const full = { code: 'connections_full', status: 503 }
const DAY = 86_400_000

function createRig() {
  const clock = createManualClock()
  const store = createMemoryStore({ clock, log: createRecordingLog() })
  const secrets = createTestSecrets({ 'keys/old': 'o'.repeat(32), 'keys/new': 'n'.repeat(32) })
  const replica = (keys: readonly string[] = ['old']) => {
    const handles = keys.map((key) => secrets.handle({ name: 'keys', key }))
    return createPointers(store, createSeal(createSealingKeys(handles), clock), { clock, maxEntries: 1_000 })
  }
  let ids = 0
  const pointer = (values: Partial<Pointer> = {}): Pointer => ({
    id: `id-${++ids}`,
    createdAtMs: clock.now(),
    endsAtMs: Infinity,
    ...values,
  })
  return { clock, store, replica, pointer }
}
const refOf = (person: string, provider = 'github') =>
  connectionRef({ issuer: 'https://idp.example.com', identity: `sub:${person}` }, provider)

/** Fills the index but for `free` places. */
async function fill(store: Store, free = 0): Promise<void> {
  const bound = { members: MOST_CONNECTIONS, bytes: MOST_CONNECTIONS, evicts: false }
  for (let index = 0; index < MOST_CONNECTIONS - free; index++)
    await store.admit('connections', `connection:other:github:${index}`, Buffer.from('1'), DAY, bound)
}

test('a person has at most 100 connections, however many are made at once', async () => {
  const { replica, pointer } = createRig()
  const [one, other] = [replica(), replica()]
  const attempts = Array.from({ length: MOST_PER_PERSON + 20 }, (_, index) => `provider-${index}`)
  const made: PromiseSettledResult<unknown>[] = []
  for (let from = 0; from < attempts.length; from += 6) {
    const some = attempts.slice(from, from + 6)
    made.push(
      ...(await Promise.allSettled(
        some.map((provider, index) => (index % 2 === 0 ? one : other).replace(refOf('alice', provider), pointer())),
      )),
    )
  }
  const refused = made.filter((result) => result.status === 'rejected')
  expect(refused.map(({ reason }) => reason as unknown)).toEqual(
    Array.from({ length: 20 }, () => expect.objectContaining(full) as unknown),
  )
  expect((await one.ofOwner(refOf('alice').owner)).pointers.size).toBe(MOST_PER_PERSON)
  expect(await one.list()).toHaveLength(MOST_PER_PERSON)
  // Replacing needs no place, and other people have theirs.
  await one.replace(refOf('alice', 'provider-0'), pointer())
  await one.replace(refOf('bob'), pointer())
  await expect(one.checkRoom(refOf('alice', 'another'))).rejects.toMatchObject(full)
  await one.remove(refOf('alice', 'provider-1'))
  await one.checkRoom(refOf('alice', 'another'))
})

test('all people have at most 100,000 connections', async () => {
  const { store, replica, pointer, clock } = createRig()
  await fill(store, 2)
  const pointers = replica()
  await pointers.replace(refOf('alice'), pointer())
  const last = await Promise.allSettled(
    ['bob', 'carol', 'dave'].map((person) => pointers.replace(refOf(person), pointer())),
  )
  expect(last.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
  await expect(pointers.replace(refOf('erin'), pointer())).rejects.toMatchObject(full)
  await expect(pointers.checkRoom(refOf('erin'))).rejects.toMatchObject(full)
  expect(await pointers.find(refOf('erin'))).toBeUndefined()
  expect(await pointers.list()).toHaveLength(MOST_CONNECTIONS)
  // A replacement needs no place of its own.
  await pointers.checkRoom(refOf('alice'))
  await pointers.replace(refOf('alice'), pointer())
  expect(await pointers.list()).toHaveLength(MOST_CONNECTIONS)
  await pointers.remove(refOf('alice'))
  await pointers.replace(refOf('erin'), pointer({ endsAtMs: clock.now() + 1_000 }))
  await expect(pointers.replace(refOf('frank'), pointer())).rejects.toMatchObject(full)
  // Those that end free their place.
  clock.advance(1_000)
  await pointers.replace(refOf('frank'), pointer())
})

test('a broken connection frees its place and is counted apart until it is replaced', async () => {
  const { replica, pointer } = createRig()
  const pointers = replica()
  const first = pointer()
  await pointers.replace(refOf('alice'), first)
  expect(await pointers.markBroken(refOf('alice'), 'id-of-another')).toBe(false)
  expect(await pointers.markBroken(refOf('alice'), first.id)).toBe(true)
  expect(await pointers.list()).toMatchObject([{ provider: 'github', state: 'broken' }])
  expect(await pointers.find(refOf('alice'))).toMatchObject({ id: first.id })
  await pointers.replace(refOf('alice'), pointer())
  expect(await pointers.list()).toMatchObject([{ provider: 'github', state: 'connected' }])
})

test('connections in use keep their place for years, and the hash of a person survives a rotation', async () => {
  const { clock, replica, pointer } = createRig()
  const pointers = replica()
  await pointers.replace(refOf('alice'), pointer())
  const [before] = await pointers.list()
  for (let half = 0; half < 4; half++) {
    clock.advance(181 * DAY)
    expect(await replica().find(refOf('alice'))).toBeDefined()
  }
  expect(await pointers.list()).toEqual([before])
  const rotated = replica(['new', 'old'])
  expect((await rotated.ofOwner(refOf('alice').owner)).caller).toBe(before?.caller)
  expect(await replica(['new']).find(refOf('alice'))).toBeDefined()
  await rotated.remove(refOf('alice'))
  expect(await rotated.list()).toEqual([])
})

test('a connection that is removed and replaced at once leaves no place behind', async () => {
  const { replica, pointer } = createRig()
  const [one, other] = [replica(), replica()]
  for (let round = 0; round < 20; round++) {
    await Promise.all([
      one.replace(refOf('alice'), pointer()),
      other.remove(refOf('alice')),
      other.replace(refOf('alice'), pointer()),
    ])
    const { pointers } = await one.ofOwner(refOf('alice').owner)
    expect(await one.list()).toHaveLength(pointers.size)
  }
})

test('without room a client gets no link but a clear response, and a person a clear page', async () => {
  const rig = await startRig(sockets)
  const alice = callerOf(rig)
  const { url } = await rig.links.link(alice, 'code', MISSING)
  await fill(rig.store)
  const page = await connect(rig, new Browser(), url)
  expect([page.status, textOf(page)]).toEqual([503, expect.stringContaining('No more accounts can be connected')])
  expect(textOf(page)).toMatch(/Nothing was connected.*Request \S+/)
  expect(await rig.links.isConnected(alice, 'github')).toBe(false)
  expect(rig.notices.at(-1)).toMatchObject({ type: 'connect_refused', details: { cause: 'failed' } })
  rig.clock.advance(61_000)
  await expect(rig.links.link(alice, 'code', MISSING)).rejects.toMatchObject(full)
})
