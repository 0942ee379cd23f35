import {
  after,
  asFailure,
  type Clock,
  type CredentialLookup,
  Failure,
  type FailureCode,
  isDuring,
  type Metrics,
  monotonicNow,
  type Pause,
} from '../core/index.ts'
import { createCacheCounters, type FetchPurpose } from './counters.ts'
import { createEntries, ENTRY_BYTES, type Entry } from './entries.ts'
import { hardEndMs, refreshAtMs, refreshPauseMs } from './lifetimes.ts'
import { groupEntries, type CacheListing } from './listing.ts'
import { createNegatives } from './negatives.ts'
import type { FetchedValue, SharedCredentials } from './shared-ports.ts'
import {
  matchesFilter,
  type CacheScope,
  type CacheSlot,
  type Generation,
  type Ownership,
  type PurgeFilter,
} from './slot.ts'
import { createTtlLru } from './ttl-lru.ts'

/** A credential that is rejected this soon after its fetch is not fetched again. */
const REJECTION_PAUSE_MS = 1_000
const DEFAULT_MAX_BYTES = 16 * 1024 * 1024
/** Share of the bytes for negative entries, in addition to the credentials. */
const NEGATIVES_SHARE = 0.25
/** Failures of one token, not of all tokens of the caller. */
const OF_ONE_TOKEN: ReadonlySet<FailureCode> = new Set(['expired_token', 'invalid_token'])

export interface CredentialCacheOptions<V = unknown> {
  readonly clock: Clock
  readonly metrics: Metrics
  /** In [0, 1); jitter of refreshes. */
  readonly random: () => number
  /** Default: limited by `maxBytes`. */
  readonly maxEntries?: number | undefined
  /** Approximate bytes of all entries. Default 16 MiB. */
  readonly maxBytes?: number | undefined
  /** Approximate bytes of a credential. Default: none. */
  readonly weigh?: (value: V) => number
  /** Limit per issuer, caller and config, enforced while the cache is more than half full. Default 256. */
  readonly maxPerOwner?: number
  /** Current settings for sharing between replicas; read for each fetch, purge and rejection. */
  readonly shared?: () => SharedCredentials<V> | undefined
}

/** Identifies an entry. */
type Keyed = Pick<CacheSlot<unknown>, 'key'>

/** The cache of fetched credentials (decisions §4). */
export interface CredentialCache<V = unknown> {
  /** The scope of one config, with its counters. */
  scope(config: string, type: string): CacheScope
  /**
   * Returns the credential of a slot: at once if cached, else from the single call in flight for its key. Throws or
   * rejects with `Failure`. Waiting callers cannot cancel the call.
   */
  get(slot: CacheSlot<V>): V | Promise<V>
  /**
   * Fetches a new credential instead of a rejected one, which stays until then; one call for all callers. Throws or
   * rejects with `Failure`, without a fetch during a negative entry.
   */
  renew(slot: CacheSlot<V>): Promise<V>
  /** Result of `get` without fetching, counting or refreshing. */
  lookup(slot: Keyed): CredentialLookup
  /**
   * Removes a `value` that the backend rejected, unless a newer one is cached. False if a new fetch is useless,
   * because this one had just replaced a rejected one.
   */
  reject(slot: Keyed, value: V): boolean
  /** The service of a config has recovered: its negative entries expire within a second. */
  endPauses(config: string): void
  /** Whether the slot's credential replaced a rejected one within the last second, so that a new fetch is useless. */
  isFreshAfterRejection(slot: Keyed): boolean
  /**
   * Removes matching entries; a call in flight completes for its callers and is not cached. Returns the number, and
   * whether other replicas are notified (false after 2 s).
   */
  purge(filter: PurgeFilter): { readonly purged: number; readonly notified: Promise<number | undefined> | undefined }
  /** Purges this process only, on request of another replica. */
  purgeHere(filter: PurgeFilter): number
  /** The secrets of a config have changed: removes credentials fetched with others under the same config hash. */
  retireSecrets(config: string, current: Generation): number
  /** The same without notifying replicas: a loaded configuration found them changed. */
  retireSecretsHere(config: string, current: Generation): number
  /** The configuration was replaced: removes entries of removed or changed configs. */
  retireConfigs(current: ReadonlyMap<string, string>): number
  list(): CacheListing
}

interface Flight<V> extends Ownership {
  readonly tokenDigest: string | undefined
  readonly promise: Promise<V>
  /** Its result is only for callers that already wait. */
  isRetired: boolean
}

/** Creates the cache; one per process. */
export const createCredentialCache = <V = unknown>(options: CredentialCacheOptions<V>): CredentialCache<V> =>
  new BoundedCredentialCache(options)

class BoundedCredentialCache<V> implements CredentialCache<V> {
  readonly #clock: Clock
  readonly #random: () => number
  readonly #shared: () => SharedCredentials<V> | undefined
  readonly #maxEntries: number
  readonly #counters: ReturnType<typeof createCacheCounters>
  readonly #entries: ReturnType<typeof createEntries<V>>
  readonly #negatives: ReturnType<typeof createNegatives>
  readonly #rejections: ReturnType<typeof createTtlLru<Pause>>
  readonly #flights = new Map<string, Flight<V>>()

  constructor(options: CredentialCacheOptions<V>) {
    const { clock, maxBytes = DEFAULT_MAX_BYTES, weigh = () => 0, maxPerOwner = 256 } = options
    const maxEntries = options.maxEntries ?? Math.floor(maxBytes / ENTRY_BYTES)
    const counters = createCacheCounters(options.metrics)
    this.#clock = clock
    this.#random = options.random
    this.#shared = options.shared ?? (() => undefined)
    this.#maxEntries = maxEntries
    this.#counters = counters
    this.#negatives = createNegatives({ clock, maxEntries, maxBytes: Math.ceil(maxBytes * NEGATIVES_SHARE) })
    this.#rejections = createTtlLru<Pause>({ clock, maxEntries })
    this.#entries = createEntries<V>({
      clock,
      maxEntries,
      // A configured number replaces the limit of bytes.
      maxBytes: options.maxEntries === undefined ? maxBytes : Number.MAX_SAFE_INTEGER,
      weigh,
      maxPerOwner,
      onCount: (count) => counters.entries(count),
    })
  }

  scope(config: string, type: string): CacheScope {
    return { config, type, counters: this.#counters.forType(type) }
  }

  get(slot: CacheSlot<V>): V | Promise<V> {
    const entry = this.#entries.use(slot.key)
    if (entry === undefined) return this.#miss(slot)
    slot.scope.counters.hit.add()
    if (this.#clock.now() >= entry.refreshAtMs && !this.#flights.has(slot.key)) this.#refresh(slot)
    return entry.value
  }

  renew(slot: CacheSlot<V>): Promise<V> {
    const flight = this.#flights.get(slot.key)
    if (flight !== undefined) return flight.promise
    const failure = this.#negatives.blocking(slot.key)
    if (failure !== undefined) throw failure
    return this.#start(slot, 'rejected').promise
  }

  lookup({ key }: Keyed): CredentialLookup {
    const entry = this.#entries.peek(key)
    if (entry !== undefined) {
      const { obtainedAtMs, endMs } = entry
      return { from: 'cache', obtainedAtMs, refreshAtMs: entry.refreshAtMs, endMs }
    }
    if (this.#flights.has(key)) return { from: 'flight' }
    return { from: this.#negatives.blocking(key) === undefined ? 'service' : 'refusal' }
  }

  reject(slot: Keyed, value: V): boolean {
    const entry = this.#entries.peek(slot.key)
    if (entry === undefined || entry.value !== value) return true
    if (this.isFreshAfterRejection(slot)) return false
    const sinceMs = this.#clock.now()
    const untilMs = sinceMs + REJECTION_PAUSE_MS
    this.#rejections.set(slot.key, { sinceMs, untilMs }, untilMs)
    this.#entries.remove(entry, 'rejected')
    this.#shared()?.reject(slot, value)
    return true
  }

  endPauses(config: string): void {
    this.#negatives.endPauses(config, this.#random)
  }

  isFreshAfterRejection({ key }: Keyed): boolean {
    return isDuring(this.#rejections.peek(key), this.#clock.now())
  }

  purge(filter: PurgeFilter): ReturnType<CredentialCache<V>['purge']> {
    const notified = this.#shared()?.purge(filter)
    return { purged: this.purgeHere(filter), notified }
  }

  purgeHere(filter: PurgeFilter): number {
    return this.#forget((owner) => matchesFilter(owner, filter), 'purged')
  }

  retireSecrets(config: string, current: Generation): number {
    void this.#shared()?.announceRotation(config)
    return this.retireSecretsHere(config, current)
  }

  retireSecretsHere(config: string, { configHash, secrets }: Generation): number {
    return this.#forget(
      ({ scope, generation }) =>
        scope.config === config && generation.configHash === configHash && generation.secrets !== secrets,
      'retired',
    )
  }

  retireConfigs(current: ReadonlyMap<string, string>): number {
    return this.#forget(({ scope, generation }) => current.get(scope.config) !== generation.configHash, 'retired')
  }

  list(): CacheListing {
    const groups = groupEntries(this.#entries.all(), this.#clock.now())
    const live = groups.reduce((sum, group) => sum + group.count, 0)
    const { size: inFlight } = this.#flights
    return { entries: live, maxEntries: this.#maxEntries, inFlight, negative: this.#negatives.size, groups }
  }

  #miss(slot: CacheSlot<V>): Promise<V> {
    const flight = this.#flights.get(slot.key)
    if (flight !== undefined) return this.#join(flight, slot)
    if (slot.notAfterMs !== undefined && slot.notAfterMs <= this.#clock.now()) {
      throw new Failure('expired_token', { detail: 'the token has expired' })
    }
    const failure = this.#negatives.blocking(slot.key)
    if (failure !== undefined) {
      slot.scope.counters.negative.add()
      throw failure
    }
    slot.scope.counters.miss.add()
    return this.#start(slot, this.isFreshAfterRejection(slot) ? 'rejected' : 'miss').promise
  }

  #join(flight: Flight<V>, slot: CacheSlot<V>): Promise<V> {
    slot.scope.counters.joined.add()
    // One call per key: after a purge, a caller waits for the previous call and then fetches.
    const again = () => this.get(slot)
    if (flight.isRetired) return flight.promise.then(again, again)
    if (flight.tokenDigest === slot.tokenDigest) return flight.promise
    // The caller's previous token may have expired meanwhile: that does not reject this one.
    return flight.promise.catch((error: unknown) => {
      if (!(error instanceof Failure) || !OF_ONE_TOKEN.has(error.code)) throw error
      return again()
    })
  }

  #refresh(slot: CacheSlot<V>): void {
    // No caller waits: the result is counted, and a failure surfaces when the old credential expires.
    this.#start(slot, 'refresh').promise.catch(() => undefined)
  }

  #start(slot: CacheSlot<V>, purpose: FetchPurpose): Flight<V> {
    const { key, scope, generation, issuer, subject, role, tokenDigest } = slot
    const owner = { scope, generation, issuer, subject, role }
    const { promise, resolve, reject } = Promise.withResolvers<V>()
    const flight: Flight<V> = { ...owner, tokenDigest, promise, isRetired: false }
    this.#flights.set(key, flight)
    this.#fetch(slot, flight, purpose).then(resolve, reject)
    return flight
  }

  /** Fetches and stores the credential of a flight, and completes it. Rejects with `Failure`. */
  async #fetch(slot: CacheSlot<V>, flight: Flight<V>, purpose: FetchPurpose): Promise<V> {
    const { key, scope } = slot
    const startedAtMs = this.#clock.now()
    const endsAtMs = after(monotonicNow(), slot.deadlineMs)
    const seconds = (): number => Math.max(0, this.#clock.now() - startedAtMs) / 1_000
    // Callers see the flight before it completes.
    await Promise.resolve()
    try {
      const shared = this.#shared()
      const fetched: FetchedValue<V> =
        shared === undefined
          ? await slot.fetch(endsAtMs)
          : await shared.fetch(slot, this.#entries.peek(key)?.value, endsAtMs)
      const value = this.#keep(slot, flight, fetched)
      scope.counters.fetched(purpose, fetched.isShared === true ? 'shared' : 'ok', seconds())
      return value
    } catch (error) {
      const failure = asFailure(error)
      scope.counters.fetched(purpose, failure.code, seconds())
      this.#recordFailure(slot, flight, failure)
      throw failure
    } finally {
      this.#flights.delete(key)
    }
  }

  #keep(slot: CacheSlot<V>, flight: Flight<V>, { value, expiresAtMs, ...made }: FetchedValue<V>): V {
    const now = this.#clock.now()
    if (slot.notAfterMs !== undefined && slot.notAfterMs <= now) {
      throw new Failure('expired_token', { detail: 'the token expired while a credential was obtained for it' })
    }
    if (!(expiresAtMs > now)) {
      throw new Failure('identity_provider_error', { detail: 'the credential had expired when it arrived' })
    }
    if (flight.isRetired) return value
    const endMs = Math.min(expiresAtMs, slot.notAfterMs ?? Infinity)
    // A credential of another replica keeps its age: it is refreshed and expires at the same time.
    const obtainedAtMs = made.obtainedAtMs ?? now
    const refreshAt = refreshAtMs(endMs, obtainedAtMs, this.#random())
    this.#negatives.forget(slot.key)
    this.#entries.add(slot, value, { endMs: hardEndMs(endMs, obtainedAtMs), refreshAtMs: refreshAt, obtainedAtMs })
    return value
  }

  #recordFailure(slot: CacheSlot<V>, flight: Flight<V>, failure: Failure): void {
    if (flight.isRetired) return
    const failuresInARow = this.#negatives.note(slot, failure)
    const old = this.#entries.peek(slot.key)
    // Never earlier than without the failure: the refresh time of the old credential stays.
    if (old !== undefined)
      old.refreshAtMs = Math.max(old.refreshAtMs, this.#clock.now() + refreshPauseMs(failure, failuresInARow))
  }

  #forget(matches: (owner: Ownership) => boolean, reason: string): number {
    const found: Entry<V>[] = []
    for (const entry of this.#entries.all()) if (matches(entry)) found.push(entry)
    for (const entry of found) this.#entries.remove(entry, reason)
    for (const flight of this.#flights.values()) if (matches(flight)) flight.isRetired = true
    this.#negatives.forgetWhere(matches)
    return found.length
  }
}
