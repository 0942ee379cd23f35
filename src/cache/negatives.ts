import {
  type ChallengeHint,
  type Clock,
  type EpochMs,
  Failure,
  type FailureCode,
  FAILURES,
  isDuring,
  OutboundError,
  type Pause,
} from '../core/index.ts'
import { pauseMs } from './lifetimes.ts'
import type { CacheSlot, Ownership } from './slot.ts'
import { createTtlLru } from './ttl-lru.ts'

/** Time to count consecutive failures after their pause. */
const MEMORY_MS = 60_000
/** After a recovery, pauses end spread over this time. */
const SPREAD_MS = 1_000

interface Negative extends Ownership, Pause, Pick<Failure, 'rule' | 'refusal'> {
  untilMs: EpochMs
  failuresInARow: number
  readonly code: FailureCode
  readonly detail: string | undefined
  readonly challenge: ChallengeHint | undefined
}

export interface Negatives {
  readonly size: number
  /** The failure to return during the pause; its Retry-After is the rest of the pause. */
  blocking(key: string): Failure | undefined
  /** Adds a negative entry; returns the number of consecutive failures, without those of an open circuit. */
  note(owner: Ownership & Pick<CacheSlot<unknown>, 'key' | 'isKeyedByToken'>, failure: Failure): number
  /** The service of a config has recovered: its pauses end within a second, spread by `random` in [0, 1). */
  endPauses(config: string, random: () => number): void
  forget(key: string): void
  forgetWhere(matches: (owner: Ownership) => boolean): void
}

/** Above any known error code; other text may be as long as a response. */
const LONGEST_ERROR = 64
const boundedError = (error: string | undefined): string | undefined =>
  error === undefined || error.length > LONGEST_ERROR ? undefined : error

/** No request was sent, so none failed. */
const isSuppressed = ({ cause }: Failure): boolean => cause instanceof OutboundError && cause.kind === 'breaker_open'

const isOfService = (code: FailureCode): boolean =>
  FAILURES[code].fault === 'identity_provider' || code === 'overloaded'

/** Approximate overhead of a negative entry. */
const NEGATIVE_BYTES = 600

/** Approximate bytes of a negative entry: challenges are long. */
const bytesOf = ({ detail = '', challenge = {}, issuer, subject }: Negative): number =>
  NEGATIVE_BYTES + detail.length + issuer.length + subject.length + JSON.stringify(challenge).length

export interface NegativesOptions {
  readonly clock: Clock
  readonly maxEntries: number
  /** Approximate limit of all entries. */
  readonly maxBytes: number
}

/** Creates the negative entries in a separate limited cache, so that failing callers evict no credentials. */
export function createNegatives({ clock, maxEntries, maxBytes }: NegativesOptions): Negatives {
  const negatives = createTtlLru<Negative>({ clock, maxEntries, maxWeight: maxBytes, weigh: bytesOf })
  return {
    get size() {
      return negatives.size
    },
    blocking(key) {
      const negative = negatives.get(key)
      const nowMs = clock.now()
      if (!isDuring(negative, nowMs)) return undefined
      return new Failure(negative.code, {
        ...(negative.detail === undefined ? {} : { detail: negative.detail }),
        rule: negative.rule,
        refusal: negative.refusal,
        ...(negative.challenge === undefined ? {} : { challenge: negative.challenge }),
        ...(FAILURES[negative.code].retryable
          ? { retryAfterSeconds: Math.ceil((negative.untilMs - nowMs) / 1_000) }
          : {}),
      })
    },
    note(slot, failure) {
      const { key } = slot
      const before = negatives.peek(key)?.failuresInARow ?? 0
      const failuresInARow = isSuppressed(failure) ? Math.max(1, before) : before + 1
      const pause = pauseMs(failure, failuresInARow, slot.isKeyedByToken)
      if (pause === undefined) return failuresInARow
      const sinceMs = clock.now()
      const untilMs = sinceMs + pause
      // Copied field by field: neither the cause nor the caller stays in memory.
      const { scope, generation, issuer, subject, role } = slot
      const { code, detail, challenge, rule, refusal } = failure
      const negative = {
        scope,
        generation,
        issuer,
        subject,
        role,
        sinceMs,
        untilMs,
        failuresInARow,
        code,
        detail,
        challenge,
        rule,
        refusal: refusal && { status: refusal.status, error: boundedError(refusal.error) },
      }
      negatives.set(key, negative, untilMs + MEMORY_MS)
      return failuresInARow
    },
    endPauses(config, random) {
      for (const [, negative] of negatives.entries()) {
        if (negative.scope.config !== config || !isOfService(negative.code)) continue
        negative.untilMs = Math.min(negative.untilMs, clock.now() + random() * SPREAD_MS)
        negative.failuresInARow = 0
      }
    },
    forget: (key) => void negatives.delete(key),
    forgetWhere(matches) {
      for (const [key, negative] of negatives.entries()) if (matches(negative)) negatives.delete(key)
    },
  }
}
