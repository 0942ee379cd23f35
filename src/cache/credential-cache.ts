import {
  Failure,
  asFailure,
  isDuring,
  type Clock,
  type CredentialLookup,
  type FailureCode,
  type Metrics,
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

/** A credential that is refused although it was fetched this recently is not fetched again: the backend means it. */
const REJECTION_PAUSE_MS = 1_000
const DEFAULT_MAX_BYTES = 16 * 1024 * 1024
/** Remembered failures may take this part of the bytes of credentials beside them. */
const NEGATIVES_SHARE = 0.25
/** What is said of the token that was shown, and not of another one of the same caller. */
const OF_ONE_TOKEN: ReadonlySet<FailureCode> = new Set(['expired_token', 'invalid_token'])

export interface CredentialCacheOptions<V = unknown> {
  readonly clock: Clock
  readonly metrics: Metrics
  /** In [0, 1); spreads the refreshes. */
  readonly random: () => number
  /** Default: as many as `maxBytes` holds. */
  readonly maxEntries?: number | undefined
  /** Bytes that the entries may take, about. Default 16 MiB. */
  readonly maxBytes?: number | undefined
  /** About how many bytes of that a credential takes. Default: none. */
  readonly weigh?: (value: V) => number
  /** Per issuer + caller + config, enforced while the cache is more than half full. Default 256. */
  readonly maxPerOwner?: number
  /** What is in force now for sharing with other replicas; asked when something is fetched, purged or refused. */
  readonly shared?: () => SharedCredentials<V> | undefined
}

/** What finds an entry. */
type Keyed = Pick<CacheSlot<unknown>, 'key'>

/** The one cache of fetched credentials (decisions §4). */
export interface CredentialCache<V = unknown> {
  /** The scope of one config, with its counters. */
  scope(config: string, type: string): CacheScope
  /**
   * The credential of a slot: at once where there is a live one, else when the one call in flight for its key ends.
   * Throws (or rejects with) `Failure`. Whoever stops waiting cancels nothing.
   */
  get(slot: CacheSlot<V>): V | Promise<V>
  /**
   * A new credential instead of one that was refused, which stays until there is a new one; one call for all that wait. Throws (or
   * rejects with) `Failure`, while a failure is remembered without asking.
   */
  renew(slot: CacheSlot<V>): Promise<V>
  /** What `get` would find; nothing is fetched, counted or kept alive by it. */
  lookup(slot: Keyed): CredentialLookup
  /**
   * The backend refused `value`: it is forgotten, unless a newer one is already there. False when fetching again can't
   * help, because this one had itself just replaced a refused one.
   */
  reject(slot: Keyed, value: V): boolean
  /** The service that a config fetches from is well again: the pauses that it caused end within a second. */
  endPauses(config: string): void
  /** Whether the slot's credential replaced a refused one within the last second: then fetching again can't help. */
  isFreshAfterRejection(slot: Keyed): boolean
  /**
   * Forgets what matches the filter; a call in flight still answers its waiters and is then forgotten. Gives the number, and
   * where others share the cache, whether they will hear of it (false after 2 s).
   */
  purge(filter: PurgeFilter): { readonly purged: number; readonly told: Promise<number | undefined> | undefined }
  /** The same for this process only: another replica purged. */
  purgeHere(filter: PurgeFilter): number
  /** The secrets of a config have changed: what was obtained with others under the same config hash is forgotten. */
  retireSecrets(config: string, current: Generation): number
  /** The same without telling other replicas: a configuration that was just loaded found them changed. */
  retireSecretsHere(config: string, current: Generation): number
  /** The configuration was replaced: forgets what belongs to configs that are gone or have another hash now. */
  retireConfigs(current: ReadonlyMap<string, string>): number
  list(): CacheListing
}

interface Flight<V> extends Ownership {
  readonly tokenDigest: string | undefined
  readonly promise: Promise<V>
  /** What it brings is for those who wait already, and for nobody after them. */
  isRetired: boolean
}

/** Makes the cache; one per process. */
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
      // Whoever configures the number means it.
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
    const told = this.#shared()?.purge(filter)
    return { purged: this.purgeHere(filter), told }
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
    // One call per key at a time: what comes after a purge waits for the call before it, and then asks for itself.
    const again = () => this.get(slot)
    if (flight.isRetired) return flight.promise.then(again, again)
    if (flight.tokenDigest === slot.tokenDigest) return flight.promise
    // Its token may have expired while this one was renewed: that is no refusal of this one.
    return flight.promise.catch((error: unknown) => {
      if (!(error instanceof Failure) || !OF_ONE_TOKEN.has(error.code)) throw error
      return again()
    })
  }

  #refresh(slot: CacheSlot<V>): void {
    // Nothing waits for it; how it ended is counted, and a failure shows when the old one expires.
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

  /** Fetches and keeps the credential of a flight, which it ends. Rejects with `Failure`. */
  async #fetch(slot: CacheSlot<V>, flight: Flight<V>, purpose: FetchPurpose): Promise<V> {
    const { key, scope } = slot
    const startedAtMs = this.#clock.now()
    const endsAtMs = performance.now() + slot.deadlineMs
    const seconds = (): number => Math.max(0, this.#clock.now() - startedAtMs) / 1_000
    // A turn later: what waits for the flight sees it before it ends.
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
    // What another replica made is as old as it is: it is renewed and expires when it would there.
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
    // Never earlier than without the failure: a credential that was to be renewed before its time stays as it is.
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
