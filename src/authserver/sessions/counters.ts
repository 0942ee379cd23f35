import type { Metrics } from '../../core/index.ts'

/** How a refresh ended. */
export type RefreshOutcome = 'refreshed' | 'by_another_replica' | 'not_stored' | 'refused' | 'unavailable' | 'failed'

/** What became of a session; `lost`: nothing but a new login helps, `mismatch`: another user or client showed its name. */
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
    'Upstream sessions by what became of them: created, ended, lost (only a new login helps), mismatch (shown by another).',
    ['event'],
  )
  return {
    refresh: (upstream, outcome) => refreshes.with(upstream, outcome).add(),
    session: (event) => sessions.with(event).add(),
  }
}
