import { createTtlLru } from '../cache/index.ts'
import { type Clock, type EpochMs, Failure } from '../core/index.ts'
import { networkOf } from '../http/index.ts'

/** Request rate of one client address. */
export interface Rate {
  readonly perSecond: number
  readonly burst: number
}

/** Throws `rate_limited` with a Retry-After when this address exceeds its rate. */
export type Limit = (address: string) => void

/** Maximum tracked addresses per limit; the least recently used is dropped. */
const MOST_ADDRESSES = 20_000

/**
 * A token bucket per client address (authserver.md §3). IPv6 addresses count by their first 64 bits, which one
 * customer owns.
 */
export function createLimit({ perSecond, burst }: Rate, clock: Clock): Limit {
  const buckets = createTtlLru<{ tokens: number; atMs: EpochMs }>({ clock, maxEntries: MOST_ADDRESSES })
  const refillMs = (burst / perSecond) * 1_000

  return (address) => {
    const nowMs = clock.now()
    const key = networkOf(address)
    const bucket = buckets.get(key) ?? { tokens: burst, atMs: nowMs }
    // A clock that was set back removes no tokens.
    const elapsedMs = Math.max(0, nowMs - bucket.atMs)
    const tokens = Math.min(burst, bucket.tokens + (elapsedMs / 1_000) * perSecond)
    const isAllowed = tokens >= 1
    // A full bucket need not be kept.
    buckets.set(key, { tokens: isAllowed ? tokens - 1 : tokens, atMs: nowMs }, nowMs + refillMs)
    if (!isAllowed)
      throw new Failure('rate_limited', {
        detail: `more than ${Math.round(perSecond * 60)} requests a minute from one network (embeddedAuthServer.limits)`,
        retryAfterSeconds: Math.max(1, Math.ceil((1 - tokens) / perSecond)),
      })
  }
}
