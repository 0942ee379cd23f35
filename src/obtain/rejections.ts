import { isDuring, onBehalfOf, type Caller, type Clock } from '../core/index.ts'

/** A credential that is younger is renewed only for more than one caller: one of them could have it renewed all the time. */
const NEW_MS = 60_000
/** How old a replacement has to be before it is replaced; doubled each time that one is refused while it is new. */
const FIRST_PAUSE_MS = 1_000
const LONGEST_PAUSE_MS = 60_000

/** When a credential that all callers share is renewed because it was refused (decisions §4). */
export interface Rejections {
  /**
   * Whether the credential that was obtained then is to be renewed, now that `caller` was refused with it. `caller` undefined: the
   * service that issued it says so, which is no caller's doing.
   */
  mayRenew(obtainedAtMs: number, caller: string | undefined): boolean
  /** It was. */
  renewed(): void
}

/** All callers of a route without authentication are one. */
export const nameOfCaller = (caller: Caller): string =>
  caller.kind === 'anonymous' ? 'anonymous' : onBehalfOf(caller).caller

/** Who was refused with one credential while it was new. */
interface Refused {
  readonly obtainedAtMs: number
  readonly first: string
  isSeveral: boolean
}

/** Remembers the rejections of one credential: the caller that was refused first, and whether there was another one. */
export function createRejections(clock: Clock): Rejections {
  let refused: Refused | undefined
  let pauseMs = FIRST_PAUSE_MS
  let renewedAtMs = Infinity

  return {
    mayRenew(obtainedAtMs, caller) {
      // The last replacement was itself renewed, near its end: it was not refused.
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
      // Refused while it was new: what is fetched now may be refused as well.
      pauseMs = refused === undefined ? FIRST_PAUSE_MS : Math.min(LONGEST_PAUSE_MS, 2 * pauseMs)
      refused = undefined
      renewedAtMs = clock.now()
    },
  }
}
