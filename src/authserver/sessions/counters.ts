import type { Metrics } from '../../core/index.ts'

/** Outcome of a refresh. */
export type RefreshOutcome = 'refreshed' | 'by_another_replica' | 'not_stored' | 'refused' | 'unavailable' | 'failed'

/**
 * Lifecycle event of a session; `lost`: requires a new login, `mismatch`: another user or client presented its id.
 */
export type SessionEvent = 'created' | 'ended' | 'lost' | 'mismatch'

export interface SessionCounters {
  readonly refresh: (upstream: string, outcome: RefreshOutcome) => void
  readonly session: (event: SessionEvent) => void
}

/** Counts by outcome, nothing per user (authserver.md §7). */
export function createSessionCounters(metrics: Metrics): SessionCounters {
  const refreshes = metrics.counter('extauth_upstream_refreshes_total', 'Refreshes of upstream tokens, by outcome.', [
    'upstream',
    'outcome',
  ])
  const sessions = metrics.counter(
    'extauth_upstream_sessions_total',
    'Upstream sessions, by event: created, ended, lost (requires a new login), mismatch (presented by another user or client).',
    ['event'],
  )
  return {
    refresh: (upstream, outcome) => refreshes.with(upstream, outcome).add(),
    session: (event) => sessions.with(event).add(),
  }
}
