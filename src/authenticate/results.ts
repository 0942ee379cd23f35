import { createPauses, createTtlLru } from '../cache/index.ts'
import { type AuthenticatedCaller, type Clock, type Failure, isDuring, type Pause } from '../core/index.ts'
import type { Verdict } from './verdict.ts'

/** Cached verdicts. */
export interface Results {
  /** The caller object of a verified token, while cached. */
  accepted(key: string): AuthenticatedCaller | undefined
  refused(key: string): Failure | undefined
  remember(key: string, verdict: Verdict): void
  clear(): void
}

const REFUSED_KEPT_MS = 10_000
const MAX_REFUSED = 10_000
const DEFAULT_MAX_BYTES = 64 * 1024 * 1024

/**
 * Two caches, so that invalid tokens evict no valid ones (decisions §2.5). Accepted tokens are kept for the lifetime in
 * their verdict, rejected ones for 10 s, undecided ones never. Expiry is checked at every hit; a clock that was set back
 * expires all entries, since a token may have been revoked meanwhile. Accepted tokens take about `maxBytes` (default 64
 * MiB): a few huge tokens must not fill the memory.
 */
export function createResults(clock: Clock, maxBytes: number = DEFAULT_MAX_BYTES): Results {
  const accepted = createTtlLru<Pause & { caller: AuthenticatedCaller; weight: number }>({
    clock,
    maxEntries: Number.MAX_SAFE_INTEGER,
    maxWeight: maxBytes,
    weigh: ({ weight }) => weight,
  })
  const refused = createPauses<Failure>({ clock, maxEntries: MAX_REFUSED })
  return {
    accepted(key) {
      const entry = accepted.get(key)
      return isDuring(entry, clock.now()) ? entry.caller : undefined
    },
    refused: (key) => refused.get(key),
    remember(key, verdict) {
      const sinceMs = clock.now()
      if (verdict.kind === 'accepted') {
        const { caller, weight, keepUntilMs: untilMs } = verdict
        accepted.set(key, { caller, weight, sinceMs, untilMs }, untilMs)
      } else if (verdict.kind === 'refused') {
        refused.set(key, verdict.failure, Math.min(REFUSED_KEPT_MS, (verdict.changesAtMs ?? Infinity) - sinceMs))
      }
    },
    clear() {
      accepted.clear()
      refused.clear()
    },
  }
}
