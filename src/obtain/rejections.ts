import { type Caller, type Clock, type EpochMs, isDuring, onBehalfOf } from '../core/index.ts'

/**
 * A younger credential is renewed only after rejections for two callers, so that one caller can't cause continuous
 * renewal.
 */
const NEW_MS = 60_000
/** Minimum age of a replacement before it is replaced; doubled each time a new one is rejected. */
const FIRST_PAUSE_MS = 1_000
const LONGEST_PAUSE_MS = 60_000

/** Decides when a shared credential is renewed after a rejection (decisions §4). */
export interface Rejections {
  /**
   * Whether to renew the credential obtained then, after `caller` was rejected with it. `caller` undefined: the
   * issuing service rejected it.
   */
  mayRenew(obtainedAtMs: EpochMs, caller: string | undefined): boolean
  /** Records the renewal. */
  renewed(): void
}

/** All callers of an unauthenticated route count as one. */
export const nameOfCaller = (caller: Caller): string =>
  caller.kind === 'anonymous' ? 'anonymous' : onBehalfOf(caller).caller

/** The first caller rejected with a new credential. */
interface Refused {
  readonly obtainedAtMs: EpochMs
  readonly first: string
  isSeveral: boolean
}

/** Tracks the rejections of one credential: the first rejected caller, and whether there was another. */
export function createRejections(clock: Clock): Rejections {
  let refused: Refused | undefined
  let pauseMs = FIRST_PAUSE_MS
  let renewedAtMs = Infinity

  return {
    mayRenew(obtainedAtMs, caller) {
      // The last replacement was renewed because of its age: it was not rejected.
      if (obtainedAtMs > renewedAtMs) pauseMs = FIRST_PAUSE_MS
      const nowMs = clock.now()
      const isYounger = (ms: number): boolean => isDuring({ sinceMs: obtainedAtMs, untilMs: obtainedAtMs + ms }, nowMs)
      if (!isYounger(NEW_MS)) {
        if (refused?.obtainedAtMs !== obtainedAtMs) refused = undefined
        return true
      }
      if (refused?.obtainedAtMs !== obtainedAtMs) refused = { obtainedAtMs, first: caller ?? '', isSeveral: false }
      refused.isSeveral ||= caller === undefined || caller !== refused.first
      return refused.isSeveral && !isYounger(pauseMs)
    },
    renewed() {
      // It was rejected while new: the next one may be rejected as well.
      pauseMs = refused === undefined ? FIRST_PAUSE_MS : Math.min(LONGEST_PAUSE_MS, 2 * pauseMs)
      refused = undefined
      renewedAtMs = clock.now()
    },
  }
}
