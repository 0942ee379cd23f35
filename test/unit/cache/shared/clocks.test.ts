import { expect, it } from 'vitest'
import { createMemoryStore } from '../../../../src/storage/index.ts'
import { createManualClock, createRecordingLog } from '../../../support/ports.ts'
import { createFleetReplica, createProvider, LIFETIME_MS, settle } from '../../../support/cache/shared/fleet.ts'

it('a replica whose clock is behind does not keep a credential longer than the store does', async () => {
  const provider = createProvider()
  const [maker, reader] = [createManualClock(), createManualClock()]
  const store = createMemoryStore({ clock: maker, log: createRecordingLog() })
  const one = createFleetReplica(store, { clock: maker, provider })
  const token = await one.get('alice')
  await settle()
  const behindMs = 0.5 * LIFETIME_MS
  maker.advance(behindMs)
  const other = createFleetReplica(store, { clock: reader, provider })
  expect(await other.get('alice')).toBe(token)
  maker.advance(LIFETIME_MS - behindMs)
  reader.advance(LIFETIME_MS - behindMs)
  expect(await other.get('alice')).not.toBe(token)
})

it('another replica whose clock is ahead does not make this one keep a credential for longer', async () => {
  const provider = createProvider()
  const [maker, reader] = [createManualClock(), createManualClock()]
  const store = createMemoryStore({ clock: reader, log: createRecordingLog() })
  maker.advance(2 * LIFETIME_MS)
  const token = await createFleetReplica(store, { clock: maker, provider }).get('alice')
  await settle()
  const other = createFleetReplica(store, { clock: reader, provider })
  expect(await other.get('alice')).toBe(token)
  reader.advance(LIFETIME_MS - 20_000)
  expect(await other.get('alice'), 'in the last 30 s of its life').not.toBe(token)
})
