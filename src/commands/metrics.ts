import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from 'prom-client'
import type { Metrics } from '../core/index.ts'

/** All metrics of a process at one moment, in prom-client's form. */
export type MetricsSnapshot = Awaited<ReturnType<Registry['getMetricsAsJSON']>>

/** `Metrics` on prom-client, and its text for `/metrics`. Declaring the same metric twice gives the same one. */
export interface OpenMetrics extends Metrics {
  /** Prometheus text exposition format. */
  render(): Promise<string>
  /** The same as data, for whoever puts those of several processes together. */
  snapshot(): Promise<MetricsSnapshot>
  /** Forgets every series, of whatever metric, that has all of these labels: what they counted is no more. */
  removeSeries(labels: Readonly<Record<string, string>>): void
}

/** A metric and the label values that it was asked for. */
interface Declared<M extends Counter | Gauge | Histogram> {
  readonly metric: M
  readonly labelNames: readonly string[]
  readonly series: Map<string, readonly string[]>
}

/** Metrics of this process; those of Node itself (`process_*`, `nodejs_*`) come along unless `processMetrics` is false. */
export function openMetrics(options: { processMetrics?: boolean } = {}): OpenMetrics {
  const registry = new Registry()
  if (options.processMetrics !== false) collectDefaultMetrics({ register: registry })
  const known = new Map<string, Declared<Counter | Gauge | Histogram>>()
  const declare = <M extends Counter | Gauge | Histogram>(
    name: string,
    labelNames: readonly string[],
    make: () => M,
  ): Declared<M> => {
    const existing = known.get(name)
    if (existing !== undefined) return existing as Declared<M>
    const made = { metric: make(), labelNames, series: new Map<string, readonly string[]>() }
    known.set(name, made)
    return made
  }
  const remember = ({ series }: Declared<Counter | Gauge | Histogram>, labels: readonly string[]): void => {
    if (labels.length > 0) series.set(JSON.stringify(labels), labels)
  }
  return {
    counter: (name, help, labelNames = []) => {
      const declared = declare(
        name,
        labelNames,
        () => new Counter({ name, help, labelNames: [...labelNames], registers: [registry] }),
      )
      return {
        with: (...labels) => {
          remember(declared, labels)
          const child = declared.metric.labels(...labels)
          return { add: (by = 1) => child.inc(by) }
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
      const make = () =>
        new Histogram({ name, help, labelNames: [...labelNames], buckets: [...buckets], registers: [registry] })
      const declared = declare(name, labelNames, make)
      return {
        with: (...labels) => {
          remember(declared, labels)
          const child = declared.metric.labels(...labels)
          return { observe: (value) => child.observe(value) }
        },
      }
    },
    render: () => registry.metrics(),
    snapshot: () => registry.getMetricsAsJSON(),
    removeSeries(labels) {
      for (const { metric, labelNames, series } of known.values()) {
        const wanted = Object.entries(labels).map(([name, value]) => [labelNames.indexOf(name), value] as const)
        for (const [key, values] of series) {
          if (!wanted.every(([at, value]) => at !== -1 && values[at] === value)) continue
          metric.remove(...values)
          series.delete(key)
        }
      }
    },
  }
}
