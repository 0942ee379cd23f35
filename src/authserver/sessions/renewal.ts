import { createPauses, createTtlLru } from '../../cache/index.ts'
import { after, asFailure, type Clock, Failure, type Log, monotonicNow } from '../../core/index.ts'
import { mayHeal } from '../../oauth/index.ts'
import type { Upstream } from '../../upstreams/index.ts'
import type { EndedSessions } from './ended.ts'
import type { LiveTokens } from './live.ts'
import type { Refreshed, RefreshRequest } from './refresh.ts'

/** The session is unusable: 401 with a challenge. */
export const noSession = (detail: string): Failure =>
  new Failure('no_session', { detail, challenge: { error: 'invalid_token' } })

export interface RenewalOptions {
  /** By name. */
  readonly upstreams: ReadonlyMap<string, Upstream>
  readonly refresh: (request: RefreshRequest) => Promise<Refreshed | undefined>
  readonly live: LiveTokens
  readonly ended: EndedSessions
  readonly end: (tsid: string) => Promise<void>
  readonly clock: Clock
  readonly log: Log
}

/** Refreshes of this process. */
export interface Renewal {
  /**
   * Runs one refresh at a time per session and provider; concurrent callers share its result. A failure is cached for
   * two seconds, a rejection other than `invalid_grant` for five minutes. Throws `no_session`, after which the
   * session is revoked everywhere unless `mayHeal` is set, and the errors of a refresh.
   */
  renew(tsid: string, provider: string, needs: RefreshRequest['needs']): Promise<Refreshed>
  /**
   * Ends a session that only a new login can replace, so that its refresh token is rejected too and clients log in
   * again. Throws `failure`.
   */
  lose(tsid: string, failure: Failure): Promise<never>
  /** Waits for refreshes in flight. */
  settle(): Promise<void>
}

/** Deadline of a refresh, including the wait for another replica's; later callers wait less. */
const DEADLINE_MS = 10_000
const FAILURE_PAUSE_MS = 2000
/** Pause before retrying a grant that may have been rejected by mistake. */
const HEAL_PAUSE_MS = 5 * 60_000
const MOST_REMEMBERED = 10_000

export function createRenewal(options: RenewalOptions): Renewal {
  const { upstreams, refresh, live, ended, end, clock, log } = options
  const flights = new Map<string, Promise<Refreshed>>()
  const failures = createPauses<Failure>({ clock, maxEntries: MOST_REMEMBERED })
  // Sessions whose stored tokens can't be refreshed any more: they end with the tokens in this process.
  const unsaved = createTtlLru<true>({ clock, maxEntries: MOST_REMEMBERED })

  const lose = async (tsid: string, failure: Failure): Promise<never> => {
    await end(tsid).catch((error: unknown) => {
      log.warn({ reason: asFailure(error).code }, 'removing an ended session from the store failed')
    })
    throw failure
  }

  const run = async (tsid: string, provider: string, needs: RefreshRequest['needs']): Promise<Refreshed> => {
    const upstream = upstreams.get(provider)
    if (upstream === undefined) throw new Failure('config_error', { detail: `there is no upstream ${provider}` })
    if (unsaved.get(tsid) === true) throw noSession('the tokens, which could not be stored, have expired')
    const result = await refresh({ tsid, upstream, needs, endsAtMs: after(monotonicNow(), DEADLINE_MS) })
    if (result === undefined || ended.has(tsid)) throw noSession('the session has ended meanwhile')
    if (!result.isStored) unsaved.set(tsid, true, result.record.endsAtMs)
    live.keep(tsid, provider, result.held, result.record)
    return result
  }

  const start = async (key: string, tsid: string, provider: string, needs: RefreshRequest['needs']) => {
    try {
      return await run(tsid, provider, needs)
    } catch (error) {
      const failure = asFailure(error)
      if (failure.code === 'no_session' && !mayHeal(failure)) return await lose(tsid, failure)
      failures.set(key, failure, mayHeal(failure) ? HEAL_PAUSE_MS : FAILURE_PAUSE_MS)
      throw failure
    } finally {
      flights.delete(key)
    }
  }

  return {
    async renew(tsid, provider, needs) {
      const key = `${provider} ${tsid}`
      const failure = failures.get(key)
      if (failure !== undefined) throw failure
      const flight = flights.get(key) ?? start(key, tsid, provider, needs)
      flights.set(key, flight)
      return flight
    },
    lose,
    async settle() {
      await Promise.allSettled(flights.values())
    },
  }
}
