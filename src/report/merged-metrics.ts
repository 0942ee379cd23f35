import AggregatorRegistry from 'prom-client/lib/cluster.js'
import type { MetricsSnapshot } from './metrics.ts'
import type { NamesInUse } from './names-in-use.ts'

/** Merges the metrics of several processes. */
export interface MergedMetrics {
  /** Replaces the figures of a worker. */
  take(worker: object, snapshot: MetricsSnapshot): void
  /** A worker has exited: its counters stay in the sums, so that no counter decreases. Its gauges are removed. */
  depart(worker: object): void
  /**
   * Renders `own` and all workers in Prometheus text format. Removes series of exited workers for routes, identity
   * providers and upstreams that no worker uses. Keeps all if a worker did not respond.
   */
  render(own: MetricsSnapshot, inUse: readonly NamesInUse[]): Promise<string>
}

/** Merges by metric: counters and histograms by sum; gauges by sum, minimum or maximum. */
export function createMergedMetrics(): MergedMetrics {
  const byWorker = new Map<object, MetricsSnapshot>()
  let departed: MetricsSnapshot = []
  const lasting = (snapshot: MetricsSnapshot): MetricsSnapshot =>
    snapshot.filter(({ type }) => String(type) !== 'gauge')
  return {
    take: (worker, snapshot) => void byWorker.set(worker, snapshot),
    depart(worker) {
      const last = byWorker.get(worker)
      byWorker.delete(worker)
      if (last !== undefined) departed = merge([departed, lasting(last)])
    },
    async render(own, inUse) {
      if (inUse.length > 0) departed = ofNames(departed, inUse)
      return registryOf([...byWorker.values(), own, departed]).metrics()
    },
  }
}

const registryOf = (snapshots: readonly MetricsSnapshot[]) =>
  AggregatorRegistry.aggregate(snapshots.map((snapshot) => [...snapshot]))

/** Merges snapshots into one. */
function merge(snapshots: readonly MetricsSnapshot[]): MetricsSnapshot {
  return registryOf(snapshots).getMetricsAsArray() as MetricsSnapshot
}

function ofNames(snapshot: MetricsSnapshot, inUse: readonly NamesInUse[]): MetricsSnapshot {
  const known = (['route', 'name', 'upstream'] as const).map(
    (label) => [label, new Set<unknown>(inUse.flatMap((names) => names[label]))] as const,
  )
  return snapshot.map((metric) => ({
    ...metric,
    values: metric.values.filter(({ labels }) =>
      known.every(([label, names]) => labels[label] === undefined || labels[label] === '' || names.has(labels[label])),
    ),
  }))
}
