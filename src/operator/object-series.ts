import type { Metrics } from '../core/index.ts'
import type { KubeObject, ResourceType } from '../kube/index.ts'
import { conditionsOf } from './conditions.ts'
import { CONFIG_KINDS, REFERRING_KINDS } from './kinds.ts'

/** Metrics whose series are removed with their object. */
export type OperatorMetrics = Metrics & {
  /** Removes every series that has all of these labels. */
  removeSeries(labels: Readonly<Record<string, string>>): void
}

const KINDS: ReadonlySet<string> = new Set([...CONFIG_KINDS, ...REFERRING_KINDS])

/** Keeps `extauth_object_ready` current: one series per object with the condition `Ready`. */
export function followObjects(
  metrics: OperatorMetrics,
): (type: ResourceType, before: KubeObject | undefined, after: KubeObject | undefined) => void {
  const ready = metrics.gauge('extauth_object_ready', '1 while the condition Ready of an object is True.', [
    // Most selective label first: series are looked up by it.
    'name',
    'namespace',
    'kind',
  ])
  return ({ kind }, before, after) => {
    const object = after ?? before
    if (object === undefined || !KINDS.has(kind)) return
    const { name, namespace = 'default' } = object.metadata
    if (after === undefined) return metrics.removeSeries({ name, namespace, kind })
    const isReady = conditionsOf(after).some(({ type, status }) => type === 'Ready' && status === 'True')
    ready.with(name, namespace, kind).set(isReady ? 1 : 0)
  }
}
