import { describe, expect, it } from 'vitest'
import { createMemoryStore } from '../../../../src/storage/index.ts'
import { createManualClock, createRecordingLog } from '../../../support/ports.ts'
import { createFleetReplica, createProvider, settle } from '../../../support/cache/shared/fleet.ts'
import { createMoodyStore, type Mood } from '../../../support/cache/shared/moody-store.ts'

async function createWorld(budgetMs: number) {
  const clock = createManualClock()
  const provider = createProvider()
  const inner = createMemoryStore({ clock, log: createRecordingLog() })
  const [one, two] = [createMoodyStore(inner), createMoodyStore(inner)]
  const replicas = [one, two].map(({ store }) => createFleetReplica(store, { clock, provider, budgetMs }))
  const [first, second] = replicas
  if (first === undefined || second === undefined) throw new RangeError('two')
  await settle()
  const become = (mood: Mood) => {
    one.become(mood)
    two.become(mood)
  }
  return { clock, provider, inner, one, two, first, second, become }
}

const isAlone = (replica: { metrics: { value(name: string): number } }) =>
  replica.metrics.value('extauth_shared_credentials_alone') === 1

describe('without its store', () => {
  it.each(['gone', 'silent'] as const)(
    'that is %s a replica falls back to the local cache and logs it',
    async (mood) => {
      const { provider, first, second, become } = await createWorld(200)
      become(mood)
      const subjects = Array.from({ length: 20 }, (_, index) => `user-${index}`)
      const startedAt = performance.now()
      for (const replica of [first, second]) {
        // Concurrent requests share a failure.
        for (let at = 0; at < subjects.length; at += 5) {
          await Promise.all(subjects.slice(at, at + 5).map((subject) => replica.get(subject)))
        }
      }
      expect(provider.calls).toHaveLength(40)
      for (const replica of [first, second]) {
        expect(isAlone(replica)).toBe(true)
        expect(replica.count('alone')).toBe(20)
        expect(replica.log.lines.filter((line) => line.includes('using the local cache'))).toHaveLength(1)
      }
      // Each waited once for its budget; later requests don't wait at all.
      expect(performance.now() - startedAt).toBeLessThan(5_000)
      const warmedAt = performance.now()
      for (let count = 0; count < 50; count += 1) await first.get(`later-${count}`)
      expect(performance.now() - warmedAt).toBeLessThan(2_000)
      become('fine')
    },
  )

  it('a slow store costs a request its budget and no more', async () => {
    const { first, become } = await createWorld(50)
    become('silent')
    const startedAt = performance.now()
    await first.get('alice')
    const tookMs = performance.now() - startedAt
    expect(tookMs).toBeGreaterThanOrEqual(45)
    expect(tookMs, 'generous, for a busy machine').toBeLessThan(1_000)
    become('fine')
  })

  it('everything is shared again when it is back, what was made meanwhile too', async () => {
    const { provider, first, second, become } = await createWorld(200)
    become('gone')
    for (const subject of ['a', 'b', 'c', 'd']) await first.get(subject)
    expect(isAlone(first)).toBe(true)
    become('fine')
    await expect.poll(() => isAlone(first), { timeout: 5_000 }).toBe(false)
    await settle()
    for (const subject of ['a', 'b', 'c', 'd', 'e']) await second.get(subject)
    await first.get('e')
    expect(provider.calls).toEqual(['a', 'b', 'c', 'd', 'e'])
    expect(first.log.lines.at(-1)).toContain('again')
  })

  it.each([
    ['a minute before, local credentials of other replicas are not trusted either', 60_000, 3],
    ['in this moment, what another made is taken', 1_000, 2],
  ])('whose credential, made alone, is refused: %s', async (_what, afterMs, made) => {
    const { clock, provider, one, two, first, second, become } = await createWorld(200)
    become('gone')
    for (const replica of [first, second]) for (const subject of ['a', 'b', 'c', 'd']) await replica.get(subject)
    provider.calls.length = 0
    const own = await first.get('alice')
    const others = await second.get('alice')
    expect([isAlone(first), isAlone(second)]).toEqual([true, true])
    // The last upload wins.
    for (const [store, replica] of [[one, first] as const, [two, second] as const]) {
      store.become('fine')
      await expect.poll(() => isAlone(replica), { timeout: 5_000 }).toBe(false)
      await settle()
    }
    clock.advance(afterMs)
    await first.refuse('alice')
    const next = await first.get('alice')
    expect(next).not.toBe(own)
    expect(next === others).toBe(made === 2)
    expect(provider.calls).toHaveLength(made)
    // A replica that recovers later uses the credential of the first.
    await settle()
    clock.advance(1_000)
    await second.refuse('alice')
    expect(await second.get('alice')).toContain(`token-3-`)
    expect(provider.calls).toHaveLength(3)
  })

  it('a lock that arrives after its request continued is released', async () => {
    const { provider, first, second, become } = await createWorld(100)
    become('silent')
    const token = await first.get('alice')
    become('fine')
    await settle()
    await expect.poll(() => second.get('alice'), { timeout: 2_000 }).toContain('of-alice')
    expect(token).toContain('of-alice')
    expect(provider.calls.length).toBeLessThanOrEqual(2)
  })

  it('a purge that can’t be published is published later, and applies locally at once', async () => {
    const { provider, first, second, become } = await createWorld(200)
    await first.get('alice')
    await second.get('alice')
    become('gone')
    first.cache.purge({ subject: 'alice' })
    await settle()
    await first.get('alice')
    expect(provider.calls).toHaveLength(2)
    become('fine')
    await expect.poll(() => second.cache.list().entries, { timeout: 5_000 }).toBe(0)
    await second.get('alice')
    await settle()
    expect(new Set(provider.calls)).toEqual(new Set(['alice']))
    expect(await second.get('alice')).not.toContain('token-1-')
  })

  it('hundreds of unpublished purges become one purge of everything', async () => {
    const { provider, first, second, become } = await createWorld(200)
    for (const replica of [first, second]) await replica.get('alice')
    become('gone')
    first.cache.purge({ subject: 'alice' })
    for (let count = 0; count < 300; count += 1) first.cache.purge({ subject: `user-${count}` })
    await settle()
    become('fine')
    await expect.poll(() => isAlone(first), { timeout: 5_000 }).toBe(false)
    await settle()
    await second.get('alice')
    expect(provider.calls).toEqual(['alice', 'alice'])
  })

  it('a replica that starts without it works, and joins when it comes', async () => {
    const clock = createManualClock()
    const provider = createProvider()
    const moody = createMoodyStore(createMemoryStore({ clock, log: createRecordingLog() }))
    moody.become('gone')
    const replica = createFleetReplica(moody.store, { clock, provider, budgetMs: 200 })
    expect(await replica.get('alice')).toContain('of-alice')
    expect(isAlone(replica)).toBe(true)
    moody.become('fine')
    await expect.poll(() => isAlone(replica), { timeout: 5_000 }).toBe(false)
  })

  it('asks it now and then only', async () => {
    const { one, first, become } = await createWorld(200)
    become('gone')
    for (let count = 0; count < 4; count += 1) await first.get(`user-${count}`)
    const before = one.asked()
    for (let count = 0; count < 200; count += 1) await first.get(`later-${count}`)
    expect(one.asked() - before).toBeLessThan(20)
  })
})
