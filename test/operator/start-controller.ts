import { type Controller, createController } from '../../src/operator/controller.ts'
import { ownTypes } from '../../src/operator/index.ts'
import { openMetrics } from '../../src/report/metrics.ts'
import { silentLog } from '../kube/manual-timers.ts'
import type { FakeCluster } from './fake-cluster.ts'

export type Closers = (() => Promise<void>)[]
export const closeAll = async (closers: Closers): Promise<void> => {
  for (const close of closers.splice(0)) await close()
}

/** A controller over a cluster in memory, which has looked at everything. */
export async function startController({ client }: FakeCluster, closers: Closers): Promise<Controller> {
  const controller = createController({
    client,
    types: ownTypes('extauth.dev'),
    settings: { apiGroup: 'extauth.dev', image: 'mcp-extauth:test', restrictPodTemplate: false, secretsByLabel: false },
    namespace: undefined,
    watchSecrets: false,
    ownsKinds: true,
    writesStatus: true,
    isLeader: () => true,
    instance: 'test',
    clock: { now: () => Date.now() },
    log: silentLog,
    metrics: openMetrics(),
  })
  closers.push(() => controller.close())
  await controller.observed.synced
  controller.start()
  await controller.idle()
  return controller
}
