import type { Histogram } from 'prom-client'
import Counter from 'prom-client/lib/counter.js'
import Gauge from 'prom-client/lib/gauge.js'
import Registry from 'prom-client/lib/registry.js'
import type { Metrics } from '../core/index.ts'
import { createHistogram, type HistogramFamily } from './histogram.ts'
import { collectProcessMetrics } from './process-metrics.ts'

/** All metrics of a process at one time, in prom-client's form. */
export type MetricsSnapshot = Awaited<ReturnType<Registry['getMetricsAsJSON']>>

/** `Metrics` on prom-client, with the text of `/metrics`. A metric can be declared repeatedly. */
export interface OpenMetrics extends Metrics {
  /** Prometheus text format. */
  render(): Promise<string>
  /** All metrics as data, to merge those of several processes. */
  snapshot(): Promise<MetricsSnapshot>
  /** Removes all series with all of these labels, of any metric. */
  removeSeries(labels: Readonly<Record<string, string>>): void
}

type Family = Counter | Gauge | HistogramFamily

/** A metric and its series. */
interface Declared<M extends Family> {
  readonly metric: M
  readonly labelNames: readonly string[]
  /** By the value of the first label: thousands of routes may be removed at once. */
  readonly series: Map<string, Map<string, readonly string[]>>
}

/** Increments since the last read. prom-client would validate and join the labels on each. */
interface Tally {
  readonly child: { inc(by: number): void }
  pending: number
}

function settle(tally: Tally): void {
  // A series exists from its first increment.
  if (tally.pending > 0) tally.child.inc(tally.pending)
  tally.pending = 0
}

/** Opens the metrics of this process, with `process_*` and `nodejs_*` unless `processMetrics` is false. */
export function openMetrics(options: { processMetrics?: boolean } = {}): OpenMetrics {
  const registry = new Registry()
  if (options.processMetrics !== false) collectProcessMetrics(registry)
  const known = new Map<string, Declared<Family>>()
  const declare = <M extends Family>(name: string, labelNames: readonly string[], make: () => M): Declared<M> => {
    const existing = known.get(name)
    if (existing !== undefined) return existing as Declared<M>
    const made = { metric: make(), labelNames, series: new Map<string, Map<string, readonly string[]>>() }
    known.set(name, made)
    return made
  }
  const tallies = new Map<string, Map<string, Tally>>()
  const tallyOf = (name: string, labels: readonly string[], child: () => Tally['child']): Tally => {
    const key = JSON.stringify(labels)
    const all = tallies.get(name) ?? new Map<string, Tally>()
    tallies.set(name, all)
    const tally = all.get(key) ?? { child: child(), pending: 0 }
    all.set(key, tally)
    return tally
  }
  const remember = ({ series }: Declared<Family>, labels: readonly string[]): void => {
    const [owner] = labels
    if (owner === undefined) return
    const own = series.get(owner) ?? new Map<string, readonly string[]>()
    own.set(JSON.stringify(labels), labels)
    series.set(owner, own)
  }
  return {
    counter: (name, help, labelNames = []) => {
      const declared = declare(name, labelNames, () => {
        const collect = (): void => tallies.get(name)?.forEach(settle)
        return new Counter({ name, help, labelNames: [...labelNames], registers: [registry], collect })
      })
      return {
        with: (...labels) => {
          remember(declared, labels)
          const tally = tallyOf(name, labels, () => declared.metric.labels(...labels))
          return {
            add: (by = 1) => {
              tally.pending += by
              // Creates the series with value 0.
              if (by === 0) tally.child.inc(0)
            },
          }
        },
      }
    },
    gauge: (name, help, labelNames = [], across = 'sum') => {
      const declared = declare(
        name,
        labelNames,
        () => new Gauge({ name, help, labelNames: [...labelNames], aggregator: across, registers: [registry] }),
      )
      return {
        with: (...labels) => {
          remember(declared, labels)
          const child = declared.metric.labels(...labels)
          return { set: (value) => child.set(value), add: (by) => child.inc(by) }
        },
      }
    },
    histogram: (name, help, labelNames, buckets) => {
      const make = () => {
        const family = createHistogram({ name, help, labelNames, buckets })
        // The family has `name` and `get`, all that prom-client uses.
        registry.registerMetric(family as unknown as Histogram)
        return family
      }
      const declared = declare(name, labelNames, make)
      return {
        with: (...labels) => {
          remember(declared, labels)
          return declared.metric.labels(...labels)
        },
      }
    },
    render: () => registry.metrics(),
    snapshot: () => registry.getMetricsAsJSON(),
    removeSeries(labels) {
      for (const [name, declared] of known) {
        const { metric, labelNames, series } = declared
        const wanted = Object.entries(labels).map(([label, value]) => [labelNames.indexOf(label), value] as const)
        if (wanted.some(([at]) => at === -1)) continue
        const owner = wanted.find(([at]) => at === 0)?.[1]
        for (const [first, own] of owner === undefined ? series : [[owner, series.get(owner)] as const]) {
          for (const [key, values] of own ?? []) {
            if (!wanted.every(([at, value]) => values[at] === value)) continue
            metric.remove(...values)
            tallies.get(name)?.delete(key)
            own?.delete(key)
          }
          if (own?.size === 0) series.delete(first)
        }
      }
    },
  }
}
