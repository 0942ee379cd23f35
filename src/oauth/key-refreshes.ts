import { createTtlLru } from '../cache/index.ts'
import { type Clock, Failure, isDuring, type Pause } from '../core/index.ts'

/** Minimum interval between fetches that tokens cause (decisions §2.3). */
const REFRESH_EVERY_MS = 5000
/** Minimum interval between fetches for signatures that fail under a listed `kid`. */
const RECHECK_EVERY_MS = 5 * 60_000
/** How long a key missing from a fetch is known to be missing. */
const LOOKED_FOR_MS = 30_000
const FIRST_SIGHT_KEPT_MS = 3_600_000
const MOST_NAMES = 10_000

const notYet = (leftMs: number): Failure =>
  new Failure('identity_provider_unavailable', {
    rule: 'keys_fetched_recently',
    retryAfterSeconds: Math.max(1, Math.ceil(leftMs / 1000)),
  })

/**
 * Decides when tokens may trigger a key fetch, and for which key names a fetch has answered. A fetch answers for
 * every name first seen before it began, so invented names cannot delay the fetch of a new key.
 */
export interface KeyRefreshes {
  /** Records the first sight of a name, given as a digest of bounded length. */
  see(name: string): void
  /** Whether a fetch that began after the first sight of this name has succeeded within the last 30 s. */
  wasLookedFor(name: string): boolean
  /** Whether the fetch in flight began after this name's first sight. */
  isLookedFor(name: string): boolean
  /** Uses the one fetch per 5 s, or throws `identity_provider_unavailable` with a Retry-After. */
  take(): void
  /** Uses a fetch for a signature that fails under a listed `kid`; false while none is allowed. */
  takeRecheck(): boolean
  /** Marks the start of a fetch; call the returned function at its end. */
  begin(): (isAnswered: boolean) => void
}

export function createKeyRefreshes(clock: Clock): KeyRefreshes {
  /** By name: the number of fetches begun at its first sight. */
  const firstSights = createTtlLru<number>({ clock, maxEntries: MOST_NAMES })
  let begun = 0
  let answered: (Pause & { readonly serial: number }) | undefined
  let taken: Pause | undefined
  let rechecked: Pause | undefined

  const after = (ms: number): Pause => ({ sinceMs: clock.now(), untilMs: clock.now() + ms })

  return {
    see(name) {
      const untilMs = clock.now() + FIRST_SIGHT_KEPT_MS
      firstSights.set(name, firstSights.get(name) ?? begun, untilMs)
    },
    wasLookedFor(name) {
      const sight = firstSights.get(name)
      return sight !== undefined && isDuring(answered, clock.now()) && answered.serial > sight
    },
    isLookedFor: (name) => begun > (firstSights.get(name) ?? begun),
    take() {
      const nowMs = clock.now()
      if (isDuring(taken, nowMs)) throw notYet(taken.untilMs - nowMs)
      taken = after(REFRESH_EVERY_MS)
    },
    takeRecheck() {
      const nowMs = clock.now()
      if (isDuring(rechecked, nowMs) || isDuring(taken, nowMs)) return false
      rechecked = after(RECHECK_EVERY_MS)
      taken = after(REFRESH_EVERY_MS)
      return true
    },
    begin() {
      begun += 1
      const serial = begun
      return (isAnswered) => {
        if (isAnswered) answered = { serial, ...after(LOOKED_FOR_MS) }
        // The keys could not be compared; the next signature may try again.
        else rechecked = undefined
      }
    },
  }
}
