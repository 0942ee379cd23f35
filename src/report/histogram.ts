/** One series: counts per bucket; the last is for values above all bounds. */
interface Series {
  readonly labels: Readonly<Record<string, string>>
  readonly counts: number[]
  sum: number
  observe(value: number): void
}

/** As few objects as possible: with thousands of routes, a request finds its series in no CPU cache. */
class OneSeries implements Series {
  readonly labels: Series['labels']
  readonly counts: number[]
  readonly #buckets: readonly number[]
  sum = 0

  constructor(labels: Series['labels'], buckets: readonly number[]) {
    this.labels = labels
    this.#buckets = buckets
    this.counts = Array.from(buckets, () => 0).concat(0)
  }

  observe(value: number): void {
    const { counts } = this
    const buckets = this.#buckets
    let at = 0
    while (at < buckets.length && value > (buckets[at] ?? 0)) at++
    counts[at] = (counts[at] ?? 0) + 1
    this.sum += value
  }
}

/** A histogram in prom-client's form, with an observer per series. */
export interface HistogramFamily {
  readonly name: string
  /** Called by prom-client. */
  get(): Promise<object>
  reset(): void
  labels(...values: string[]): { observe(value: number): void }
  remove(...values: string[]): void
}

/**
 * A histogram that looks up each series once. prom-client validates and joins labels on each value, a fiftieth of a
 * request's time. `buckets` are upper bounds, inclusive, ascending.
 */
export function createHistogram(options: {
  readonly name: string
  readonly help: string
  readonly labelNames: readonly string[]
  readonly buckets: readonly number[]
}): HistogramFamily {
  const { name, help, labelNames, buckets } = options
  const all = new Map<string, Series>()

  const seriesOf = (values: readonly string[]): Series => {
    const key = JSON.stringify(values)
    let series = all.get(key)
    if (series === undefined) {
      const labels = Object.fromEntries(labelNames.map((label, at) => [label, values[at] ?? '']))
      all.set(key, (series = new OneSeries(labels, buckets)))
    }
    return series
  }

  const valuesOf = ({ labels, counts, sum }: Series): object[] => {
    let count = 0
    const under = [...buckets, '+Inf'].map((le, at) => {
      count += counts[at] ?? 0
      return { metricName: `${name}_bucket`, labels: { le, ...labels }, value: count }
    })
    return [
      ...under,
      { metricName: `${name}_sum`, labels, value: sum },
      { metricName: `${name}_count`, labels, value: count },
    ]
  }

  return {
    name,
    get: () =>
      Promise.resolve({
        name,
        help,
        type: 'histogram',
        values: [...all.values()].flatMap(valuesOf),
        aggregator: 'sum',
      }),
    reset: () => all.clear(),
    labels: (...values) => seriesOf(values),
    remove: (...values) => void all.delete(JSON.stringify(values)),
  }
}
