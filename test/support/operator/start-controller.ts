import { type Controller, type ControllerOptions, createController } from '../../../src/operator/controller.ts'
import { ownTypes, podKeys } from '../../../src/operator/index.ts'
import { createDecisions } from '../../../src/operator/webhook/decisions.ts'
import { openMetrics } from '../../../src/report/metrics.ts'
import { silentLog } from '../kube/manual-timers.ts'
import type { FakeCluster } from './fake-cluster.ts'

export type Closers = (() => Promise<void>)[]
export const closeAll = async (closers: Closers): Promise<void> => {
  for (const close of closers.splice(0)) await close()
}

const types = ownTypes('extauth.dev')
const clock = { now: () => Date.now() }
const SETTINGS = {
  apiGroup: 'extauth.dev',
  image: 'mcp-extauth:test',
  restrictPodTemplate: false,
  secretsByLabel: false,
}

/** A controller over a cluster in memory that leads, before its first look. */
export function openController(
  { client }: FakeCluster,
  closers: Closers,
  more: Partial<ControllerOptions> = {},
): Controller {
  const controller = createController({
    client,
    types,
    settings: SETTINGS,
    namespace: undefined,
    watchSecrets: false,
    ownsKinds: true,
    writesStatus: true,
    isLeader: () => true,
    instance: 'test',
    clock,
    log: silentLog,
    metrics: openMetrics(),
    ...more,
  })
  closers.push(() => controller.close())
  return controller
}

/** A controller that has reconciled all objects. */
export async function startController(
  cluster: FakeCluster,
  closers: Closers,
  more: Partial<ControllerOptions> = {},
): Promise<Controller> {
  const controller = openController(cluster, closers, more)
  await controller.observed.synced
  controller.start()
  await controller.idle()
  return controller
}

/** An operator that sees Secrets and decides what comes in, with these settings, over what is stored already. */
export async function operate(
  cluster: FakeCluster,
  closers: Closers,
  settings: { readonly restrictPodTemplate: boolean; readonly secretsByLabel: boolean },
) {
  const all = { ...SETTINGS, ...settings }
  const controller = await startController(cluster, closers, { settings: all, watchSecrets: true })
  const keys = podKeys('extauth.dev')
  return {
    controller,
    decisions: createDecisions({ ...all, client: cluster.client, types, keys, controller, clock }),
  }
}
