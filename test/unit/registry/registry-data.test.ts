import { expect, it } from 'vitest'
import { createRegistryData, type ReadAll } from '../../../src/registry/registry-data.ts'
import { openMetrics } from '../../../src/report/index.ts'
import { entry, recordingLog, snapshotOf } from '../../support/registry/setup.ts'

/** Data whose next poll ends as the test decides. */
function opened() {
  const { promise, resolve, reject } = Promise.withResolvers<Awaited<ReturnType<ReadAll>>>()
  const log = recordingLog()
  const metrics = openMetrics()
  let looks = 0
  const readAll = () => (looks++, promise)
  const data = createRegistryData({ name: 'old', readAll, clock: { now: () => 5000 }, log, metrics })
  return { data, log, metrics, looks: () => looks, resolve, reject }
}

it.each([
  ['ends well', async ({ resolve }: ReturnType<typeof opened>) => resolve(await snapshotOf([entry('a/b', '1.0.0')]))],
  ['fails', async ({ reject }: ReturnType<typeof opened>) => reject(new Error('too late'))],
])('a look that %s after the registry has gone is of no consequence', async (_, end) => {
  const one = opened()
  const looking = one.data.refresh()
  one.data.close()
  one.metrics.removeSeries({ registry: 'old' })
  await end(one)
  await looking
  expect(await one.metrics.render()).not.toContain('registry="old"')
  expect(one.data.state()).toEqual({ snapshot: undefined, problem: undefined, loadedAtMs: undefined })
  expect(one.log.lines).toEqual([])
})

it('a removed registry is not polled again, not even for a pending request', async () => {
  const one = opened()
  const looking = one.data.refresh()
  void one.data.refresh()
  one.data.close()
  one.resolve(await snapshotOf([]))
  await looking
  await one.data.refresh()
  expect(one.looks()).toBe(1)
})
