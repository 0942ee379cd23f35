import { afterAll, beforeAll, expect, it } from 'vitest'
import { createManualClock } from '../../../support/ports.ts'
import { startDeployment, type Deployment } from '../../../support/redis/deployment.ts'
import { createReplica, newScope } from '../../../support/storage/redis-world.ts'
import { createFleetReplica, createProvider } from '../../../support/cache/shared/fleet.ts'

let deployment: Deployment

beforeAll(async () => {
  deployment = await startDeployment()
}, 180_000)
afterAll(() => deployment.close())

it('4 replicas on one Redis make 200 calls for 200 callers, and know of a purge within 2 s', async () => {
  const [clock, provider, scope] = [createManualClock(), createProvider(), newScope()]
  const stores = [1, 2, 3, 4].map(() => createReplica(deployment.config(), scope))
  const replicas = stores.map(({ store }) => createFleetReplica(store, { clock, provider, budgetMs: 20_000 }))
  const [first] = replicas
  let open = () => {}
  provider.gate = new Promise<void>((resolve) => (open = resolve))
  try {
    const subjects = Array.from({ length: 200 }, (_, index) => `user-${index}`)
    const answers = Promise.all(replicas.map((replica) => Promise.all(subjects.map((subject) => replica.get(subject)))))
    await expect.poll(() => provider.calls.length, { timeout: 30_000 }).toBe(200)
    open()
    const [mine, ...others] = await answers
    for (const other of others) expect(other).toEqual(mine)
    expect(provider.calls).toHaveLength(200)

    const purgedAt = performance.now()
    first?.cache.purge({ subject: 'user-7' })
    await expect
      .poll(() => replicas.map(({ cache }) => cache.list().entries), { timeout: 15_000, interval: 10 })
      .toEqual([199, 199, 199, 199])
    expect(performance.now() - purgedAt, 'generous, for a busy machine').toBeLessThan(2_000)
    await Promise.all(replicas.map((replica) => replica.get('user-7')))
    expect(provider.calls).toHaveLength(201)
  } finally {
    for (const replica of replicas) replica.shared.close()
    for (const one of stores) await one.stores.close()
  }
}, 60_000)
