import { createTtlLru } from '../cache/index.ts'
import { type Clock, Failure, isDuring, type Pause } from '../core/index.ts'

const MOST_REFRESHES = 3
const REFRESH_EVERY_MS = 30_000
/** While keys are being changed more may come. */
const REFRESH_AFTER_NEWS_MS = 5000

const notYet = (retryAfterSeconds: number): Failure =>
  new Failure('identity_provider_unavailable', { detail: 'the keys are not fetched again yet', retryAfterSeconds })

/**
 * How often unknown keys may make us fetch (decisions §2.3): three times at once, then once per 30 s, and once per 5 s
 * after a fetch that brought a new key.
 */
export interface RefreshBudget {
  /** Takes one refresh, or throws `identity_provider_unavailable` with the time to come back. */
  take(): void
  /** The refresh has not answered the question. */
  giveBack(): void
  /** A fetch has ended, this one or another. */
  noteFetched(broughtNewKey: boolean): void
}

export function createRefreshBudget(clock: Clock): RefreshBudget {
  let left = MOST_REFRESHES
  let leftAtMs = clock.now()
  let newsAtMs = Number.NEGATIVE_INFINITY

  return {
    take() {
      const nowMs = clock.now()
      // A clock that was set back takes nothing away.
      left = Math.min(MOST_REFRESHES, left + Math.max(0, nowMs - leftAtMs) / REFRESH_EVERY_MS)
      leftAtMs = nowMs
      if (left >= 1) {
        left -= 1
        return
      }
      const newsMs = newsAtMs + REFRESH_AFTER_NEWS_MS - nowMs
      if (newsMs <= 0 && newsAtMs !== Number.NEGATIVE_INFINITY) {
        newsAtMs = Number.NEGATIVE_INFINITY
        return
      }
      const waitMs = Math.min((1 - left) * REFRESH_EVERY_MS, newsMs > 0 ? newsMs : Infinity)
      throw notYet(Math.max(1, Math.ceil(waitMs / 1000)))
    },
    giveBack: () => void (left = Math.min(MOST_REFRESHES, left + 1)),
    noteFetched: (broughtNewKey) => void (newsAtMs = broughtNewKey ? clock.now() : Number.NEGATIVE_INFINITY),
  }
}

/** How long a key that a fetch did not bring is known to be none. */
const LOOKED_FOR_MS = 30_000
const MOST_LOOKED_FOR = 10_000
/** Keys that wait for the next fetch; who made up the rest of them is told to come back. */
const MOST_SIGHTED = 1000

/** Which keys tokens named that were not there, and whether a fetch has looked for them since (decisions §2.3). */
export interface Sightings {
  /** A fetch that was begun after the first sight of this key has ended within the last 30 s. */
  wasLookedFor(key: string): boolean
  /** The next fetch looks for it. Throws `identity_provider_unavailable` when too many wait for that already. */
  see(key: string): void
  /** Whether the fetch under way was begun after this key's first sight. */
  isLookedFor(key: string): boolean
  /** A fetch begins: it looks for all that were seen. To be called when it has ended. */
  begin(): (isAnswered: boolean) => void
}

/** `key` in all of these is a digest or the like: short, whatever a token says. */
export function createSightings(clock: Clock): Sightings {
  const lookedFor = createTtlLru<Pause>({ clock, maxEntries: MOST_LOOKED_FOR })
  let sighted = new Set<string>()
  let sought: ReadonlySet<string> = new Set()

  return {
    wasLookedFor: (key) => isDuring(lookedFor.get(key), clock.now()),
    see(key) {
      if (sighted.size >= MOST_SIGHTED && !sighted.has(key)) throw notYet(1)
      sighted.add(key)
    },
    isLookedFor: (key) => sought.has(key),
    begin() {
      sought = sighted
      sighted = new Set()
      return (isAnswered) => {
        const sinceMs = clock.now()
        const untilMs = sinceMs + LOOKED_FOR_MS
        for (const key of sought) {
          if (isAnswered) lookedFor.set(key, { sinceMs, untilMs }, untilMs)
          else if (sighted.size < MOST_SIGHTED) sighted.add(key)
        }
        sought = new Set()
      }
    },
  }
}
