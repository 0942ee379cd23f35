import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from 'prom-client'
import type { Metrics } from '../core/index.ts'

/** `Metrics` on prom-client, and its text for `/metrics`. Declaring the same metric twice gives the same one. */
export interface OpenMetrics extends Metrics {
  /** Prometheus text exposition format. */
  render(): Promise<string>
}

/** Metrics of this process; those of Node itself (`process_*`, `nodejs_*`) come along unless `processMetrics` is false. */
export function openMetrics(options: { processMetrics?: boolean } = {}): OpenMetrics {
  const registry = new Registry()
  if (options.processMetrics !== false) collectDefaultMetrics({ register: registry })
  const known = new Map<string, Counter | Gauge | Histogram>()
  const declare = <M extends Counter | Gauge | Histogram>(name: string, make: () => M): M => {
    const existing = known.get(name)
    if (existing !== undefined) return existing as M
    const made = make()
    known.set(name, made)
    return made
  }
  return {
    counter: (name, help, labelNames = []) => {
      const metric = declare(
        name,
        () => new Counter({ name, help, labelNames: [...labelNames], registers: [registry] }),
      )
      return {
        with: (...labels) => {
          const child = metric.labels(...labels)
          return { add: (by = 1) => child.inc(by) }
        },
      }
    },
    gauge: (name, help, labelNames = []) => {
      const metric = declare(name, () => new Gauge({ name, help, labelNames: [...labelNames], registers: [registry] }))
      return {
        with: (...labels) => {
          const child = metric.labels(...labels)
          return { set: (value) => child.set(value), add: (by) => child.inc(by) }
        },
      }
    },
    histogram: (name, help, labelNames, buckets) => {
      const make = () =>
        new Histogram({ name, help, labelNames: [...labelNames], buckets: [...buckets], registers: [registry] })
      const metric = declare(name, make)
      return {
        with: (...labels) => {
          const child = metric.labels(...labels)
          return { observe: (value) => child.observe(value) }
        },
      }
    },
    render: () => registry.metrics(),
  }
}
