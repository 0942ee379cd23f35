import { createPauses, createTtlLru, hashKey } from '../../cache/index.ts'
import {
  type Clock,
  type EpochMs,
  Failure,
  isDuring,
  type Log,
  type Outbound,
  OutboundError,
  type OutboundResponse,
} from '../../core/index.ts'
import { lifetimeOf } from '../../oauth/index.ts'
import type { ClientNetwork } from '../client-network.ts'
import { OAuthError } from '../oauth-error.ts'

/** Cache lifetime without cache headers. */
const KEPT_MS = 5 * 60_000
/** Pause after a failed fetch, because clients choose the URLs. */
const REFUSED_MS = 15_000

/** A cache of documents at client-supplied URLs. */
export interface Fetched<T> {
  /**
   * The document at a URL, fetched through the address guard and cached for 5 minutes to 24 hours by its cache
   * headers. Throws `OAuthError` `invalid_client` or the errors of `read`, `overloaded` when the client network has
   * too many fetches in flight.
   */
  find(url: string): Promise<T>
  /** As `find`, when `old` is outdated; fetches at most every 15 s. */
  newerThan(url: string, old: T): Promise<T>
}

export interface FetchedOptions<T> {
  /** Name for messages: `client metadata document`. */
  readonly what: string
  readonly accept: string
  readonly most: number
  /** Cache lifetime without cache headers, in milliseconds. Default 5 minutes. */
  readonly fallbackMs?: number | undefined
  /** Throws `OAuthError` for an invalid response. */
  readonly read: (url: string, response: OutboundResponse) => T
  readonly outbound: Outbound
  readonly clientNetwork: ClientNetwork
  readonly clock: Clock
  readonly log: Log
}

interface Kept<T> {
  readonly value: T
  readonly untilMs: EpochMs
  readonly lookedAtMs: EpochMs
}

export function createFetched<T>(options: FetchedOptions<T>): Fetched<T> {
  const { what, outbound, clientNetwork, clock, log, fallbackMs = KEPT_MS } = options
  const kept = createTtlLru<Kept<T>>({ clock, maxEntries: options.most })
  const refusals = createPauses<OAuthError>({ clock, maxEntries: options.most })
  const flights = new Map<string, Promise<T>>()

  const fetchOnce = async (url: string): Promise<T> => {
    try {
      const response = await outbound.request({
        method: 'GET',
        url,
        headers: { accept: options.accept },
        onBehalfOf: clientNetwork.onBehalf(url),
      })
      if (response.status !== 200) throw unreachable(what)
      const value = options.read(url, response)
      const lookedAtMs = clock.now()
      const untilMs = lookedAtMs + lifetimeOf(response.headers, lookedAtMs, fallbackMs)
      kept.set(url, { value, untilMs, lookedAtMs }, untilMs)
      refusals.delete(url)
      return value
    } catch (error) {
      // No request was made: the registration of the client must not be dropped.
      if (error instanceof OutboundError && error.kind === 'overloaded')
        throw new Failure('overloaded', { detail: `${what}s`, retryAfterSeconds: 1, cause: error })
      const refusal = error instanceof OAuthError ? error : unreachable(what, error)
      log.info({ problem: refusal.description, host: new URL(url).host }, `${what} refused`)
      const known = kept.get(url)
      // A cached value stays valid: an invalid key would suffice to trigger a refetch.
      if (known === undefined) refusals.set(url, refusal, REFUSED_MS)
      else kept.set(url, { ...known, lookedAtMs: clock.now() }, known.untilMs)
      throw refusal
    }
  }

  const flightTo = (url: string): Promise<T> => {
    // Each network has its own fetch: joining another network's fetch would mean waiting in its queue.
    const key = hashKey([clientNetwork.network, url])
    const flight = flights.get(key) ?? fetchOnce(url).finally(() => flights.delete(key))
    flights.set(key, flight)
    return flight
  }

  const find = async (url: string): Promise<T> => {
    const known = kept.get(url)
    if (known !== undefined) return known.value
    const refusal = refusals.get(url)
    if (refusal !== undefined) throw refusal
    return flightTo(url)
  }

  return {
    find,
    async newerThan(url, old) {
      const known = kept.get(url)
      if (known === undefined || known.value !== old) return find(url)
      const { lookedAtMs: sinceMs } = known
      return isDuring({ sinceMs, untilMs: sinceMs + REFUSED_MS }, clock.now()) ? old : flightTo(url)
    },
  }
}

const unreachable = (what: string, cause?: unknown): OAuthError =>
  new OAuthError('invalid_client', `the ${what} cannot be fetched`, { cause })
