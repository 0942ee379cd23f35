import type { NamesInUse, OpenMetrics } from '../report/index.ts'
import type { ResolvedProxy } from '../load/index.ts'

/** Metric series labeled with names from the configuration. */
export interface NamedSeries {
  /** Marks a name as in use; its series are removed when the last use is released. */
  hold(label: string, name: string): () => void
}

/** Removes the series of names that a reload removed; alerts on them would fire forever. */
export function createNamedSeries(metrics: Pick<OpenMetrics, 'removeSeries'>): NamedSeries {
  const holders = new Map<string, number>()
  return {
    hold(label, name) {
      const key = JSON.stringify([label, name])
      holders.set(key, (holders.get(key) ?? 0) + 1)
      let isHeld = true
      return () => {
        if (!isHeld) return
        isHeld = false
        const left = (holders.get(key) ?? 1) - 1
        if (left > 0) holders.set(key, left)
        else {
          holders.delete(key)
          metrics.removeSeries({ [label]: name })
        }
      }
    },
  }
}

/** Returns `client` with its series bound to its lifetime. */
export function withSeries<T extends { close(): Promise<void> }>(series: NamedSeries, name: string, client: T): T {
  const release = series.hold('name', name)
  return { ...client, close: () => client.close().finally(release) }
}

/** The names that a configuration uses as labels. */
export function namesIn({ routes, authServers }: ResolvedProxy): NamesInUse {
  return {
    route: routes.map(({ name }) => name),
    name: routes.flatMap(({ callers }) =>
      callers.mode === 'oauth' ? callers.oauth.providers.map(({ name }) => name) : [],
    ),
    upstream: authServers.flatMap(({ spec }) => spec.upstreamProviders.map(({ name }) => name)),
  }
}
