import { openMetrics } from '../../../src/report/metrics.ts'
import { openSource, type SourceConfig } from '../../../src/registry/index.ts'
import { recordLog } from '../e2e/lab.ts'

/** How many entries a source of the registry gives, and what is wrong with it. */
export async function openRegistryFile(source: SourceConfig) {
  const opened = await openSource('default', source, {
    clock: { now: () => Date.now() },
    log: recordLog(),
    metrics: openMetrics({ processMetrics: false }),
    outbound: () => {
      throw new Error('no network')
    },
  })
  const { snapshot, problem } = opened.state()
  await opened.close()
  return { entries: snapshot?.entries.length ?? 0, problem }
}
