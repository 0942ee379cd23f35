import type { Metrics } from '../core/index.ts'

interface Counter {
  add(by?: number): void
}

/** Why a credential is fetched: there is none, it ends soon, or a backend refused it. */
export type FetchPurpose = 'miss' | 'refresh' | 'rejected'

/** The counters of one type, ready to be used on the hot path. */
export interface ScopeCounters {
  readonly hit: Counter
  readonly miss: Counter
  readonly joined: Counter
  readonly negative: Counter
  /** How one call ended (`ok` or the reason) and how long it took. */
  fetched(purpose: FetchPurpose, outcome: string, seconds: number): void
  removed(reason: string): void
}

export interface CacheCounters {
  forType(type: string): ScopeCounters
  entries(count: number): void
}

/** Declares the metrics of the credential cache (decisions §7: labels never name a subject, a token or a URL). */
export function createCacheCounters(metrics: Metrics): CacheCounters {
  const requests = metrics.counter(
    'extauth_credential_requests_total',
    'Requests for a credential: hit, miss, joined (waited for a call in flight), negative (a remembered failure).',
    ['type', 'outcome'],
  )
  const fetches = metrics.counter(
    'extauth_credential_fetches_total',
    'Calls for a credential, by what they were for (miss, refresh, rejected by a backend) and how they ended (ok, shared where another replica made it, or the reason).',
    ['type', 'purpose', 'outcome'],
  )
  const removals = metrics.counter('extauth_credential_removals_total', 'Credentials that left the cache, by reason.', [
    'type',
    'reason',
  ])
  const durations = metrics.histogram(
    'extauth_credential_fetch_seconds',
    'How long a call for a credential took, waiting for its turn included.',
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
