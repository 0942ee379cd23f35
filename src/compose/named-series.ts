import type { NamesInUse, OpenMetrics } from '../report/index.ts'
import type { ResolvedProxy } from '../load/index.ts'

/** Series of metrics whose labels are names from the configuration. */
export interface NamedSeries {
  /** Something of this name is in use; its series go when the last one has let go. */
  hold(label: string, name: string): () => void
}

/** Keeps the series of what is in use: figures of what a reload removed are no more, and an alert on them would never end. */
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

/** The same client, whose series are there until it is closed. */
export function withSeries<T extends { close(): Promise<void> }>(series: NamedSeries, name: string, client: T): T {
  const release = series.hold('name', name)
  return { ...client, close: () => client.close().finally(release) }
}

/** The names in a configuration. */
export function namesIn({ routes, authServers }: ResolvedProxy): NamesInUse {
  return {
    route: routes.map(({ name }) => name),
    name: routes.flatMap(({ callers }) =>
      callers.mode === 'oauth' ? callers.oauth.providers.map(({ name }) => name) : [],
    ),
    upstream: authServers.flatMap(({ spec }) => spec.upstreamProviders.map(({ name }) => name)),
  }
}
