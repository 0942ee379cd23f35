import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createMemoryStore } from '../../../../src/storage/index.ts'
import { createManualClock, createRecordingLog } from '../../../support/ports.ts'
import { createFleetReplica, createProvider, keyOf, settle } from '../../../support/cache/shared/fleet.ts'

const RECORD = 'purges'
const WEEK_MS = 7 * 24 * 3_600_000

/** Two replicas that know that alice was purged, and what was in the store before that. */
async function createWorld() {
  const clock = createManualClock()
  const provider = createProvider()
  const store = createMemoryStore({ clock, log: createRecordingLog() })
  const join = () => createFleetReplica(store, { clock, provider })
  const [first, second] = [join(), join()]
  await settle()
  const alice = `credential:${keyOf('alice')}`
  const purged = await first.get('alice')
  await first.get('bob')
  await settle()
  const before = { alice: await store.get(alice), marks: await store.get(RECORD) }
  clock.advance(1_000)
  first.cache.purge({ subject: 'alice' })
  await settle()
  const putBack = async () => {
    await store.put(alice, before.alice?.value ?? Buffer.alloc(0), 3_000_000)
  }
  const lose = {
    deleted: () => store.delete(RECORD),
    'an older one': () => store.put(RECORD, before.marks?.value ?? Buffer.alloc(0), WEEK_MS),
    damaged: () => store.put(RECORD, Buffer.alloc(80, 7), WEEK_MS),
  }
  return { clock, provider, store, join, first, second, purged, putBack, lose }
}

const WAYS = ['deleted', 'an older one', 'damaged'] as const

describe('a record of purges that was lost or put back', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] }))
  afterEach(() => void vi.useRealTimers())

  it.each(WAYS)('(%s) is written again within a minute by who knows more', async (way) => {
    const { store, lose, first, join, putBack, purged } = await createWorld()
    const marks = (await store.get(RECORD))?.value.length
    await lose[way]()
    vi.advanceTimersByTime(60_000)
    await settle()
    expect((await store.get(RECORD))?.value.length).toBe(marks)
    expect(first.metrics.value('extauth_shared_credentials_restored_total')).toBeLessThanOrEqual(1)
    await putBack()
    expect(await join().get('alice')).not.toBe(purged)
  })

  it.each(WAYS)('(%s) does not give purged credentials to a replica that starts then', async (way) => {
    const { lose, join, putBack, purged } = await createWorld()
    await lose[way]()
    await putBack()
    const late = join()
    await settle()
    expect(await late.get('alice')).not.toBe(purged)
  })

  it('returns no purged credentials to a replica that starts after all others ended', async () => {
    const { first, second, lose, join, putBack, purged } = await createWorld()
    for (const replica of [first, second]) replica.shared.close()
    await lose.deleted()
    await putBack()
    const late = join()
    await settle()
    expect(await late.get('alice')).not.toBe(purged)
  })

  it('costs one call per caller, not two: who starts and who ran agree on what is made then', async () => {
    const { provider, lose, join, first, second, clock } = await createWorld()
    await lose.deleted()
    clock.advance(1_000)
    const late = join()
    await settle()
    const calls = provider.calls.length
    const tokens = []
    for (const replica of [late, first, second]) tokens.push(await replica.get('carol'))
    expect(new Set(tokens).size).toBe(1)
    expect(provider.calls.length - calls).toBe(1)
    expect(first.cache.list().entries, 'who knew keeps what it has').toBe(2)
  })

  it('is logged and counted by the replica that writes it again', async () => {
    const { lose, first, second } = await createWorld()
    await lose.deleted()
    vi.advanceTimersByTime(60_000)
    await settle()
    const restored = [first, second].filter(
      ({ metrics }) => metrics.value('extauth_shared_credentials_restored_total') === 1,
    )
    expect(restored).toHaveLength(1)
    expect(restored[0]?.log.lines.join('\n')).toContain('purge log lost by the store')
  })

  it('is looked for when a value shows that there was a purge which is not known', async () => {
    const { store, lose, first, second, clock, join } = await createWorld()
    // No replica with the record runs any more: an older record, and a value from after the purge.
    const after = await first.get('dora')
    await settle()
    for (const replica of [first, second]) replica.shared.close()
    await lose['an older one']()
    const stored = await store.get(`credential:${keyOf('bob')}`)
    clock.advance(1_000)
    const late = join()
    expect(await late.get('dora')).toBe(after)
    await settle()
    expect(stored).toBeDefined()
    expect(await late.get('bob'), 'from before a purge of unknown scope').not.toContain('token-2-')
  })

  it('does not expire while replicas run, however long ago the last purge was', async () => {
    const { store, clock } = await createWorld()
    for (let hour = 0; hour < 72; hour += 1) {
      clock.advance(3_600_000)
      // Also before anybody looks at it: who starts just then must find it.
      expect(await store.get(RECORD), `after ${hour + 1} h`).toBeDefined()
      vi.advanceTimersByTime(60_000)
      await settle()
    }
  })
})
