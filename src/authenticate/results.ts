import { createTtlLru } from '../cache/index.ts'
import type { AuthenticatedCaller, Clock, Failure } from '../core/index.ts'
import type { Verdict } from './verdict.ts'

/** What is remembered of verdicts. */
export interface Results {
  /** The very object that was made when the token was verified, while it may be taken at its word. */
  accepted(key: string): AuthenticatedCaller | undefined
  refused(key: string): Failure | undefined
  remember(key: string, verdict: Verdict): void
  clear(): void
}

const REFUSED_KEPT_MS = 10_000
const MAX_REFUSED = 10_000
const DEFAULT_MAX_BYTES = 64 * 1024 * 1024

/**
 * Two caches, so that a flood of bad tokens evicts no good one (decisions §2.5): accepted for as long as the verdict
 * says, refused for 10 s, undecided never. The end of an entry is checked at every hit. Accepted ones are bounded by about
 * `maxBytes` (default 64 MiB): a few callers with huge tokens must not fill the memory, and many with small ones may stay.
 */
export function createResults(clock: Clock, maxBytes: number = DEFAULT_MAX_BYTES): Results {
  const accepted = createTtlLru<{ caller: AuthenticatedCaller; weight: number }>({
    clock,
    maxEntries: Number.MAX_SAFE_INTEGER,
    maxWeight: maxBytes,
    weigh: ({ weight }) => weight,
  })
  const refused = createTtlLru<Failure>({ clock, maxEntries: MAX_REFUSED })
  return {
    accepted: (key) => accepted.get(key)?.caller,
    refused: (key) => refused.get(key),
    remember(key, verdict) {
      if (verdict.kind === 'accepted') {
        accepted.set(key, { caller: verdict.caller, weight: verdict.weight }, verdict.keepUntilMs)
      } else if (verdict.kind === 'refused') {
        refused.set(key, verdict.failure, Math.min(clock.now() + REFUSED_KEPT_MS, verdict.changesAtMs ?? Infinity))
      }
    },
    clear() {
      accepted.clear()
      refused.clear()
    },
  }
}
