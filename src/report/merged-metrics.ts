import AggregatorRegistry from 'prom-client/lib/cluster.js'
import type { MetricsSnapshot } from './metrics.ts'
import type { NamesInUse } from './names-in-use.ts'

/** The metrics of several processes as one. */
export interface MergedMetrics {
  /** What a worker counted so far; later figures of the same worker replace it. */
  take(worker: object, snapshot: MetricsSnapshot): void
  /** A worker has gone: what it last counted stays in the sums, so that no counter goes back; its gauges do not. */
  depart(worker: object): void
  /**
   * Prometheus text exposition format: `own` and all workers. What ended workers counted for a route, identity provider or
   * upstream that no worker's names have any more is forgotten; without an answer nobody knows, and nothing is.
   */
  render(own: MetricsSnapshot, inUse: readonly NamesInUse[]): Promise<string>
}

/** Merges as each metric says: counters and histograms by their sums, gauges by sum, least or greatest. */
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

/** One snapshot of several, to be merged again. */
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
