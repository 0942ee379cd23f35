import type { Metrics } from '../core/index.ts'

interface Counter {
  add(by?: number): void
}

/** Why a credential is fetched: none is cached, it expires soon, or a backend rejected it. */
export type FetchPurpose = 'miss' | 'refresh' | 'rejected'

/** Counters of one type, bound for the hot path. */
export interface ScopeCounters {
  readonly hit: Counter
  readonly miss: Counter
  readonly joined: Counter
  readonly negative: Counter
  /** Result (`ok` or the reason) and duration of a call. */
  fetched(purpose: FetchPurpose, outcome: string, seconds: number): void
  removed(reason: string): void
}

export interface CacheCounters {
  forType(type: string): ScopeCounters
  entries(count: number): void
}

/** Declares the metrics of the credential cache (decisions §7: labels never contain a subject, token or URL). */
export function createCacheCounters(metrics: Metrics): CacheCounters {
  const requests = metrics.counter(
    'extauth_credential_requests_total',
    'Requests for a credential: hit, miss, joined (waited for a call in flight), negative (a cached failure).',
    ['type', 'outcome'],
  )
  const fetches = metrics.counter(
    'extauth_credential_fetches_total',
    'Calls for a credential by purpose (miss, refresh, rejected by a backend) and result (ok, shared if fetched by another replica, or the reason).',
    ['type', 'purpose', 'outcome'],
  )
  const removals = metrics.counter('extauth_credential_removals_total', 'Credentials that left the cache, by reason.', [
    'type',
    'reason',
  ])
  const durations = metrics.histogram(
    'extauth_credential_fetch_seconds',
    'Duration of calls for a credential, with queueing.',
    ['type'],
    [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
  )
  const entries = metrics.gauge('extauth_credential_entries', 'Credentials in the cache.').with()
  const types = new Map<string, ScopeCounters>()

  const forType = (type: string): ScopeCounters => ({
    hit: requests.with(type, 'hit'),
    miss: requests.with(type, 'miss'),
    joined: requests.with(type, 'joined'),
    negative: requests.with(type, 'negative'),
    fetched(purpose, outcome, seconds) {
      fetches.with(type, purpose, outcome).add()
      durations.with(type).observe(seconds)
    },
    removed: (reason) => removals.with(type, reason).add(),
  })

  return {
    forType(type) {
      const known = types.get(type) ?? forType(type)
      types.set(type, known)
      return known
    },
    entries: (count) => entries.set(count),
  }
}
