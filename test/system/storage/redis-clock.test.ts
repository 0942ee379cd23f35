import { afterAll, beforeAll, expect, it } from 'vitest'
import { createStores } from '../../../src/storage/index.ts'
import { createRecordingLog, createRecordingMetrics } from '../../support/ports.ts'
import { startDeployment, type Deployment } from '../../support/redis/deployment.ts'
import { newScope } from '../../support/storage/redis-world.ts'

let deployment: Deployment
beforeAll(async () => {
  deployment = await startDeployment()
}, 180_000)
afterAll(() => deployment.close())

it.each([
  ['60 s behind', -60_000, 1],
  ['60 s ahead', 60_000, 1],
  ['right', 0, 0],
])('a clock that is %s is warned of, and measured', async (_name, offMs, warnings) => {
  const [log, metrics] = [createRecordingLog(), createRecordingMetrics()]
  const stores = createStores({ clock: { now: () => Date.now() + offMs }, log, metrics, random: Math.random })
  try {
    await stores.open({ type: 'kvstore', kvstore: deployment.config() }, newScope()).get('a')
    const lines = log.lines.filter((line) => line.includes('store clock differs'))
    expect(lines).toHaveLength(warnings)
    expect(metrics.value('extauth_store_clock_offset_seconds') * -1_000).toBeGreaterThan(offMs - 1_500)
    expect(metrics.value('extauth_store_clock_offset_seconds') * -1_000).toBeLessThan(offMs + 1_500)
  } finally {
    await stores.close()
  }
})
