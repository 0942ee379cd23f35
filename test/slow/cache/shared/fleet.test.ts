import { describe, expect, it } from 'vitest'
import type { SharedStore } from '../../../../src/cache/index.ts'
import { Failure } from '../../../../src/core/index.ts'
import { createMemoryStore } from '../../../../src/storage/index.ts'
import { createManualClock, createRecordingLog } from '../../../support/ports.ts'
import {
  createFleetReplica,
  createProvider,
  createTestSeal,
  keyOf,
  LIFETIME_MS,
  SEALING,
  settle,
  type FleetReplica,
} from '../../../support/cache/shared/fleet.ts'

function createFleet(size = 4) {
  const clock = createManualClock()
  const provider = createProvider()
  const store = createMemoryStore({ clock, log: createRecordingLog() })
  const join = (...seals: string[]) =>
    createFleetReplica(store, {
      clock,
      provider,
      ...(seals.length === 0 ? {} : { seal: createTestSeal(clock, ...seals) }),
    })
  const replicas = Array.from({ length: size }, () => join())
  const [first, second] = replicas
  if (first === undefined || second === undefined) throw new RangeError('a fleet has two')
  const all = <T>(ask: (replica: FleetReplica) => Promise<T>) => Promise.all(replicas.map(ask))
  return { clock, provider, store, join, replicas, first, second, all }
}

describe('a fleet', () => {
  it('makes one call for each caller, whichever replicas are asked at once', async () => {
    const { provider, replicas, all } = createFleet()
    let open = () => {}
    provider.gate = new Promise<void>((resolve) => (open = resolve))
    const subjects = Array.from({ length: 200 }, (_, index) => `user-${index}`)
    const answers = all((replica) => Promise.all(subjects.map((subject) => replica.get(subject))))
    await expect.poll(() => provider.calls.length, { timeout: 15_000 }).toBe(200)
    open()
    const [first, ...others] = await answers
    for (const other of others) expect(other).toEqual(first)
    expect(provider.calls).toHaveLength(200)
    const sum = (outcome: string) => replicas.reduce((total, replica) => total + replica.count(outcome), 0)
    expect([sum('made'), sum('found'), sum('alone')]).toEqual([200, 600, 0])
  })

  it('has one deadline for a request, whichever replica it came to', async () => {
    const { clock, provider, store } = createFleet()
    const deadlineMs = 400
    const join = () => createFleetReplica(store, { clock, provider, deadlineMs })
    const [first, second] = [join(), join()]
    let end = () => {}
    provider.gate = new Promise<void>((resolve) => (end = resolve))
    provider.failure = new Failure('identity_provider_unavailable')
    const startedAtMs = performance.now()
    const hanging = first.get('alice')
    await expect.poll(() => provider.calls.length).toBe(1)
    const waiting = second.get('alice')
    const askedAtMs = performance.now()
    // The other replica has waited for as long as a request may take, and has no time for a call of its own.
    await expect.poll(() => provider.calls.length, { timeout: 15_000 }).toBe(2)
    const [one = 0, other = 0] = provider.ends
    expect(one).toBeLessThanOrEqual(askedAtMs + deadlineMs)
    expect(one).toBeGreaterThanOrEqual(startedAtMs + deadlineMs)
    expect(other).toBeLessThanOrEqual(askedAtMs + deadlineMs)
    end()
    await expect(hanging).rejects.toThrow('identity_provider_unavailable')
    await expect(waiting).rejects.toThrow('identity_provider_unavailable')
  })

  it('takes what another made without a call, and keeps it until it ends there', async () => {
    const { clock, provider, first, second } = createFleet()
    const token = await first.get('alice')
    clock.advance(0.5 * LIFETIME_MS)
    expect(await second.get('alice')).toBe(token)
    clock.advance(0.35 * LIFETIME_MS)
    expect(await second.get('alice'), 'at once, while it is refreshed').toBe(token)
    await settle()
    expect(provider.calls).toHaveLength(2)
    expect(await second.get('alice')).not.toBe(token)
  })

  it('refreshes ahead by one of them; the others take the new one', async () => {
    const { clock, provider, all } = createFleet()
    await all((replica) => replica.get('alice'))
    clock.advance(0.82 * LIFETIME_MS)
    const during = await all((replica) => replica.get('alice'))
    await expect.poll(() => all((replica) => replica.get('alice')), { timeout: 5_000 }).not.toEqual(during)
    await expect
      .poll(async () => new Set(await all((replica) => replica.get('alice'))).size, { timeout: 5_000 })
      .toBe(1)
    expect(provider.calls).toHaveLength(2)
  })

  it('asks the store once for what another made, once before it makes it, and not at all for what it has', async () => {
    const clock = createManualClock()
    const store = createMemoryStore({ clock, log: createRecordingLog() })
    const asked: string[] = []
    const counting: SharedStore = {
      ...store,
      get: (key) => (asked.push('get'), store.get(key)),
      getOrLock: (...args) => (asked.push('getOrLock'), store.getOrLock(...args)),
    }
    const [maker, reader] = [createFleetReplica(counting, { clock }), createFleetReplica(counting, { clock })]
    await settle()
    const cost = async (work: () => Promise<unknown>) => {
      asked.length = 0
      await work()
      return [...asked]
    }
    expect(await cost(() => maker.get('alice'))).toEqual(['getOrLock'])
    expect(await cost(() => maker.get('alice'))).toEqual([])
    await settle()
    expect(await cost(() => reader.get('alice'))).toEqual(['getOrLock'])
    await reader.refuse('alice')
    expect(await cost(() => reader.get('alice')), 'twice at most').toEqual(['getOrLock', 'getOrLock'])
  })

  it('makes a new one instead of sharing one that is about to end', async () => {
    const { clock, provider, first, second } = createFleet()
    const token = await first.get('alice')
    clock.advance(LIFETIME_MS - 20_000)
    expect(await second.get('alice')).not.toBe(token)
    expect(provider.calls).toHaveLength(2)
  })

  it('gives each caller the failure of its call, and lets the next replica try', async () => {
    const { provider, first, second } = createFleet()
    provider.failure = new Failure('exchange_denied')
    await expect(first.get('alice')).rejects.toMatchObject({ code: 'exchange_denied' })
    provider.failure = undefined
    expect(await second.get('alice')).toContain('of-alice')
    expect(provider.calls).toHaveLength(2)
  })

  it('does not take a refused credential from the store again, and the others take its successor', async () => {
    const { provider, first, second } = createFleet()
    const refused = await first.get('alice')
    expect(await second.get('alice')).toBe(refused)
    await first.refuse('alice')
    const next = await first.get('alice')
    expect(next).not.toBe(refused)
    await settle()
    await second.refuse('alice')
    expect(await second.get('alice')).toBe(next)
    expect(provider.calls).toHaveLength(2)
  })

  it('keeps nothing in the store that shows a token or whose it is', async () => {
    const { store, first } = createFleet()
    await first.get('alice')
    await first.shared.purge({ subject: 'bob' })
    await settle()
    const stored = await Promise.all([store.get(`credential:${keyOf('alice')}`), store.get('purges')])
    const bytes = Buffer.concat(stored.flatMap((found) => found?.value ?? []))
    expect(bytes.length).toBeGreaterThan(100)
    for (const word of ['Bearer', 'token-1', 'alice', 'bob', 'github'])
      expect(bytes.includes(word), `shows ${word}`).toBe(false)
  })
})

describe('a purge', () => {
  it('by one replica is seen by all, and what was made before is not used', async () => {
    const { provider, first, all } = createFleet()
    await all(async (replica) => [await replica.get('alice'), await replica.get('bob')])
    expect(first.cache.purge({ subject: 'alice' }).purged).toBe(1)
    await settle()
    await all(async (replica) => [await replica.get('alice'), await replica.get('bob')])
    expect(provider.calls.toSorted()).toEqual(['alice', 'alice', 'bob'])
  })

  it('holds for replicas that come later, and for values that are on their way while it happens', async () => {
    const { provider, join, first, second } = createFleet()
    let open = () => {}
    provider.gate = new Promise<void>((resolve) => (open = resolve))
    const before = second.get('alice')
    await expect.poll(() => provider.calls.length).toBe(1)
    first.cache.purge({ subject: 'alice' })
    await settle()
    open()
    const old = await before
    await settle()
    expect(await join().get('alice'), 'made before the purge').not.toBe(old)
    expect(await second.get('alice')).not.toBe(old)
    expect(provider.calls).toHaveLength(2)
  })

  it('of everything, and hundreds of them, forget too much rather than too little', async () => {
    const { provider, first, second } = createFleet()
    await second.get('alice')
    for (let count = 0; count < 300; count += 1) await first.shared.purge({ subject: `user-${count}` })
    await settle()
    expect(second.cache.list().entries, 'purged by the one that covers many').toBeLessThanOrEqual(1)
    first.cache.purge({})
    await settle()
    await second.get('alice')
    expect(provider.calls).toHaveLength(2)
  })
})

describe('secrets', () => {
  it('that one replica saw change are looked at by all, by the name of the config', async () => {
    const { first, replicas } = createFleet()
    first.cache.retireSecrets('ns/github', { configHash: 'hash', secrets: 'others' })
    await settle()
    for (const replica of replicas) expect(replica.rotations).toEqual(['ns/github'])
  })

  it('that seal may be rotated: who can’t open a value makes one, who can takes it', async () => {
    const { provider, join } = createFleet()
    const next = 'the-next-sealing-secret-of-32-bytes-or-more'
    const [old, both, moved] = [join(SEALING), join(SEALING, next), join(next, SEALING)]
    const token = await moved.get('alice')
    expect(await both.get('alice')).toBe(token)
    await settle()
    expect(await old.get('alice')).not.toBe(token)
    expect(old.count('unreadable')).toBe(1)
    expect(provider.calls).toHaveLength(2)
  })
})
