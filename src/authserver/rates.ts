import { createTtlLru } from '../cache/index.ts'
import { Failure, type Clock } from '../core/index.ts'
import { networkOf } from '../http/index.ts'

/** How often one client address may ask. */
export interface Rate {
  readonly perSecond: number
  readonly burst: number
}

/** Throws `rate_limited` with the time to come back when this address has asked too often. */
export type Limit = (address: string) => void

/** Addresses that are watched at a time, for each limit; the one that was quiet longest is forgotten first. */
const MOST_ADDRESSES = 20_000

/** A token bucket per client address (authserver.md §3). Of an IPv6 address the first 64 bits count: one home has the rest. */
export function createLimit({ perSecond, burst }: Rate, clock: Clock): Limit {
  const buckets = createTtlLru<{ tokens: number; atMs: number }>({ clock, maxEntries: MOST_ADDRESSES })
  const refillMs = (burst / perSecond) * 1_000

  return (address) => {
    const nowMs = clock.now()
    const key = networkOf(address)
    const bucket = buckets.get(key) ?? { tokens: burst, atMs: nowMs }
    // A clock that was set back takes nothing away.
    const elapsedMs = Math.max(0, nowMs - bucket.atMs)
    const tokens = Math.min(burst, bucket.tokens + (elapsedMs / 1_000) * perSecond)
    const isAllowed = tokens >= 1
    // A bucket that is full again is as good as none.
    buckets.set(key, { tokens: isAllowed ? tokens - 1 : tokens, atMs: nowMs }, nowMs + refillMs)
    if (!isAllowed)
      throw new Failure('rate_limited', {
        detail: `more than ${Math.round(perSecond * 60)} requests a minute from one network (embeddedAuthServer.limits)`,
        retryAfterSeconds: Math.max(1, Math.ceil((1 - tokens) / perSecond)),
      })
  }
}
