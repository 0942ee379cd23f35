import type { Metrics } from '../core/index.ts'

interface Counter {
  add(by?: number): void
}

/** The counters of one type, ready to be used on the hot path. */
export interface ScopeCounters {
  readonly hit: Counter
  readonly miss: Counter
  readonly joined: Counter
  readonly negative: Counter
  fetched(purpose: 'miss' | 'refresh', reason: string): void
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
    'Calls for a credential, by what they were for (miss, refresh) and how they ended (ok or the reason).',
    ['type', 'purpose', 'outcome'],
  )
  const removals = metrics.counter('extauth_credential_removals_total', 'Credentials that left the cache, by reason.', [
    'type',
    'reason',
  ])
  const entries = metrics.gauge('extauth_credential_entries', 'Credentials in the cache.').with()
  const types = new Map<string, ScopeCounters>()

  const forType = (type: string): ScopeCounters => ({
    hit: requests.with(type, 'hit'),
    miss: requests.with(type, 'miss'),
    joined: requests.with(type, 'joined'),
    negative: requests.with(type, 'negative'),
    fetched: (purpose, outcome) => fetches.with(type, purpose, outcome).add(),
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
