import {
  FAILURES,
  Failure,
  isDuring,
  OutboundError,
  type ChallengeHint,
  type Clock,
  type FailureCode,
  type Pause,
} from '../core/index.ts'
import { pauseMs } from './lifetimes.ts'
import type { CacheSlot, Ownership } from './slot.ts'
import { createTtlLru } from './ttl-lru.ts'

/** How long failures in a row are remembered as such after their pause. */
const MEMORY_MS = 60_000
/** Within so long after a service is well again its pauses end, not all of them at once. */
const SPREAD_MS = 1_000

interface Negative extends Ownership, Pause, Pick<Failure, 'rule' | 'refusal'> {
  untilMs: number
  failuresInARow: number
  readonly code: FailureCode
  readonly detail: string | undefined
  readonly challenge: ChallengeHint | undefined
}

export interface Negatives {
  readonly size: number
  /** The failure to answer with while the pause lasts; its Retry-After is what is left of the pause. */
  blocking(key: string): Failure | undefined
  /** Remembers a failure; gives the number of failures in a row, in which a refusal by an open circuit is none. */
  note(owner: Ownership & Pick<CacheSlot<unknown>, 'key' | 'isKeyedByToken'>, failure: Failure): number
  /** The service of a config is well again: pauses that it caused end within a second, spread by `random` in [0, 1). */
  endPauses(config: string, random: () => number): void
  forget(key: string): void
  forgetWhere(matches: (owner: Ownership) => boolean): void
}

/** Longer than any error code that is known; what is no code may be as long as a response. */
const LONGEST_ERROR = 64
const boundedError = (error: string | undefined): string | undefined =>
  error === undefined || error.length > LONGEST_ERROR ? undefined : error

/** Nothing was asked, so nothing failed. */
const isHeldBack = ({ cause }: Failure): boolean => cause instanceof OutboundError && cause.kind === 'breaker_open'

const isOfService = (code: FailureCode): boolean =>
  FAILURES[code].fault === 'identity_provider' || code === 'overloaded'

/** About what one takes beside its texts. */
const NEGATIVE_BYTES = 600

/** About how many bytes a remembered failure takes: challenges carry what a new login has to ask for, and are long. */
const bytesOf = ({ detail = '', challenge = {}, issuer, subject }: Negative): number =>
  NEGATIVE_BYTES + detail.length + issuer.length + subject.length + JSON.stringify(challenge).length

export interface NegativesOptions {
  readonly clock: Clock
  readonly maxEntries: number
  /** Bytes that all of them may take, about. */
  readonly maxBytes: number
}

/** Remembered failures, in a bounded cache of their own: a flood of failing callers evicts no good credential. */
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
      const failuresInARow = isHeldBack(failure) ? Math.max(1, before) : before + 1
      const pause = pauseMs(failure, failuresInARow, slot.isKeyedByToken)
      if (pause === undefined) return failuresInARow
      const sinceMs = clock.now()
      const untilMs = sinceMs + pause
      // Field by field: neither the cause of the failure nor the caller behind the slot is kept alive.
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
