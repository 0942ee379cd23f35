import { FAILURES, Failure, type ChallengeHint, type Clock, type FailureCode } from '../core/index.ts'
import { pauseMs } from './lifetimes.ts'
import type { Ownership } from './slot.ts'
import { createTtlLru } from './ttl-lru.ts'

/** How long failures in a row are remembered as such after their pause. */
const MEMORY_MS = 60_000

interface Negative extends Ownership {
  readonly untilMs: number
  readonly failuresInARow: number
  readonly code: FailureCode
  readonly detail: string | undefined
  readonly challenge: ChallengeHint | undefined
}

export interface Negatives {
  readonly size: number
  /** The failure to answer with while the pause lasts; its Retry-After is what is left of the pause. */
  blocking(key: string): Failure | undefined
  /** Remembers a failure; gives the number of failures in a row. */
  note(key: string, owner: Ownership, failure: Failure): number
  forget(key: string): void
  forgetWhere(matches: (owner: Ownership) => boolean): void
}

/** Remembered failures, in a bounded cache of their own: a flood of failing callers evicts no good credential. */
export function createNegatives(clock: Clock, maxEntries: number): Negatives {
  const negatives = createTtlLru<Negative>({ clock, maxEntries })
  return {
    get size() {
      return negatives.size
    },
    blocking(key) {
      const negative = negatives.get(key)
      const leftMs = (negative?.untilMs ?? 0) - clock.now()
      if (negative === undefined || leftMs <= 0) return undefined
      return new Failure(negative.code, {
        ...(negative.detail === undefined ? {} : { detail: negative.detail }),
        ...(negative.challenge === undefined ? {} : { challenge: negative.challenge }),
        ...(FAILURES[negative.code].retryable ? { retryAfterSeconds: Math.ceil(leftMs / 1_000) } : {}),
      })
    },
    note(key, owner, failure) {
      const failuresInARow = (negatives.peek(key)?.failuresInARow ?? 0) + 1
      const pause = pauseMs(failure, failuresInARow)
      if (pause === undefined) return failuresInARow
      const untilMs = clock.now() + pause
      // Field by field: neither the cause of the failure nor the caller behind the slot is kept alive.
      const { scope, generation, issuer, subject, role } = owner
      const { code, detail, challenge } = failure
      const negative = { scope, generation, issuer, subject, role, untilMs, failuresInARow, code, detail, challenge }
      negatives.set(key, negative, untilMs + MEMORY_MS)
      return failuresInARow
    },
    forget: (key) => void negatives.delete(key),
    forgetWhere(matches) {
      for (const [key, negative] of negatives.entries()) if (matches(negative)) negatives.delete(key)
    },
  }
}
