import { afterAll, beforeAll } from 'vitest'
import { startDeployment, type Deployment } from '../../support/redis/deployment.ts'
import { createReplica, newScope } from '../../support/storage/redis-world.ts'
import { storeSuite } from '../../support/storage/suite.ts'
import { ownerDeathTests } from '../../support/storage/suite-locks.ts'

let deployment: Deployment

beforeAll(async () => {
  deployment = await startDeployment({ replicas: 1 })
}, 180_000)
afterAll(() => deployment.close())

const maker = (waitReplicas: number) => ({
  name: waitReplicas === 0 ? 'Redis' : 'Redis with a replica that has to follow',
  open() {
    const scope = newScope()
    const [one, two] = [1, 2].map(() => createReplica(deployment.config({ waitReplicas }), scope))
    if (one === undefined || two === undefined) throw new Error('no replicas')
    return Promise.resolve({
      replicas: [one.store, two.store] as const,
      // The store counts for itself, from when the command arrived.
      advance: (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms + 50)),
      kill: () => void two.stores.close(),
      async close() {
        await one.stores.close()
        await two.stores.close()
      },
    })
  },
})

storeSuite(maker(0))
ownerDeathTests(maker(0))
storeSuite(maker(1))
