import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { createMemoryStore } from '../../../../src/storage/index.ts'
import { createManualClock, createRecordingLog } from '../../../support/ports.ts'
import { createFleetReplica, createProvider, settle, type FleetReplica } from '../../../support/cache/shared/fleet.ts'
import { createMoodyStore } from '../../../support/cache/shared/moody-store.ts'

const BUDGET_MS = 200

async function createWorld(budgetMs = BUDGET_MS) {
  const clock = createManualClock()
  const provider = createProvider()
  const inner = createMemoryStore({ clock, log: createRecordingLog() })
  const moody = createMoodyStore(inner)
  const replica = createFleetReplica(moody.store, { clock, provider, budgetMs })
  const other = createFleetReplica(inner, { clock, provider })
  await settle()
  return { provider, moody, replica, other }
}

const isAlone = ({ metrics }: FleetReplica) => metrics.value('extauth_shared_credentials_alone') === 1
const departures = ({ metrics }: FleetReplica, cause: string) =>
  metrics.value('extauth_shared_credentials_departures_total', cause)
const callers = (count: number, name = 'user') => Array.from({ length: count }, (_, index) => `${name}-${index}`)

describe('a store that stalls once', () => {
  it('for longer than the budget causes no call to the token endpoint', async () => {
    const { provider, moody, replica, other } = await createWorld()
    const known = callers(30)
    for (const subject of known) await other.get(subject)
    moody.become('silent')
    const answers = Promise.all(known.map((subject) => replica.get(subject)))
    await pause(1.6 * BUDGET_MS)
    moody.become('fine')
    await answers
    expect(provider.calls).toHaveLength(30)
    expect(isAlone(replica)).toBe(false)
  })

  it('counts once, however many wait for it', async () => {
    const { moody, replica } = await createWorld()
    for (let stall = 0; stall < 2; stall += 1) {
      moody.become('silent')
      const answers = Promise.all(callers(10, `stall-${stall}`).map((subject) => replica.get(subject)))
      await pause(2.6 * BUDGET_MS)
      moody.become('fine')
      await answers
      expect(isAlone(replica), `after stall ${stall}`).toBe(false)
    }
  })

  it('because this process was busy is not the store’s fault', async () => {
    const { provider, moody, replica, other } = await createWorld(50)
    moody.delayMs = 5
    for (const subject of callers(5)) await other.get(subject)
    for (let turn = 0; turn < 5; turn += 1) {
      const answer = replica.get(`user-${turn}`)
      // The question has gone out, or does so only when this process runs again: then its answer is not there either.
      const before = moody.asked()
      while (moody.asked() === before) await Promise.resolve()
      if (turn % 2 === 0) await settle()
      const until = performance.now() + 200
      while (performance.now() < until);
      await answer
    }
    expect(provider.calls).toHaveLength(5)
    expect(isAlone(replica)).toBe(false)
  })
})

describe('a store that is not well', () => {
  it('but answers reads is left, and is not taken for well by them', async () => {
    const { moody, replica } = await createWorld()
    moody.become('full')
    for (const subject of callers(4)) await replica.get(subject)
    expect(isAlone(replica)).toBe(true)
    expect(departures(replica, 'OOM')).toBe(1)
    expect(replica.log.lines.filter((line) => line.includes('using the local cache'))).toEqual([
      expect.stringContaining('its memory is full'),
    ])
    await pause(600)
    expect(isAlone(replica)).toBe(true)
    moody.become('fine')
    await expect.poll(() => isAlone(replica), { timeout: 5_000 }).toBe(false)
  })

  it('but answers a little too late is left once, not again and again', async () => {
    const { moody, replica } = await createWorld(50)
    moody.delayMs = 150
    for (const subject of callers(12)) await replica.get(subject)
    await pause(1_000)
    for (const subject of callers(12, 'later')) await replica.get(subject)
    expect(isAlone(replica)).toBe(true)
    expect(departures(replica, 'late')).toBe(1)
  })

  it('now and then is looked at less often each time', async () => {
    const { moody, replica } = await createWorld()
    const left: number[] = []
    for (let time = 0; time < 4; time += 1) {
      moody.become('gone')
      for (const subject of callers(4, `time-${time}`)) await replica.get(subject)
      const from = performance.now()
      moody.become('fine')
      await expect.poll(() => isAlone(replica), { timeout: 10_000, interval: 5 }).toBe(false)
      left.push(performance.now() - from)
    }
    expect(left[3]).toBeGreaterThanOrEqual(750)
  })

  it('gets what was made meanwhile a few at a time, and nothing more once it refuses', async () => {
    const { moody, replica } = await createWorld()
    moody.become('gone')
    for (const subject of callers(200)) await replica.get(subject)
    const before = moody.puts()
    moody.become('fine')
    await expect.poll(() => isAlone(replica), { timeout: 5_000, interval: 5 }).toBe(false)
    await pause(150)
    expect(moody.puts() - before).toBeLessThan(100)
    moody.become('full')
    await pause(300)
    const refused = moody.puts()
    moody.become('fine')
    await pause(500)
    expect(moody.puts() - refused).toBe(0)
    // Nor when it is left and well once more: then only what was made in between is handed over.
    moody.become('gone')
    for (const subject of callers(4, 'later')) await replica.get(subject)
    expect(isAlone(replica)).toBe(true)
    moody.become('fine')
    await expect.poll(() => isAlone(replica), { timeout: 10_000, interval: 5 }).toBe(false)
    await pause(300)
    expect(moody.puts() - refused).toBeLessThan(10)
  })
})
