import { setTimeout as pause } from 'node:timers/promises'
import { type Clock, type EpochMs, type Log, type Metrics, type MonotonicMs, monotonicNow } from '../core/index.ts'
import { digestOf, isLive, openEntry, sealEntry, type SharedEntry } from './shared-entry.ts'
import { createSharedBacklog } from './shared-backlog.ts'
import { createSharedGate } from './shared-gate.ts'
import { LONGEST_SHARED_MS } from './shared-marks.ts'
import { createInvalidationChannel } from './invalidation-channel.ts'
import type {
  FetchedValue,
  SharedCodec,
  SharedCredentials,
  SharedLock,
  SharedRecord,
  SharedSeal,
  SharedStore,
  SharedTrouble,
} from './shared-ports.ts'
import type { CacheSlot, PurgeFilter } from './slot.ts'
import { createTtlLru } from './ttl-lru.ts'

/** The fetching replica renews its lock within this time; after its death, another takes over. */
const LOCK_MS = 3_000
const FIRST_LOOK_MS = 15
const LONGEST_LOOK_MS = 250
/** Time reserved for an own call when another replica's takes too long, at most half of a request's. */
const OWN_CALL_MS = 3_000
const MOST_REFUSED = 10_000
/**
 * A rejection usually affects all credentials of a caller: those fetched this long before the first rejection are not
 * trusted.
 */
const TRUSTED_BEFORE_MS = 5_000
/** Written while degraded, to test whether the store accepts writes. */
const PROBE = 'probe'
const PROBE_TTL_MS = 60_000

export interface SharedCredentialsOptions<V> {
  readonly store: SharedStore
  readonly seal: SharedSeal
  readonly codec: SharedCodec<V>
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
  readonly random: () => number
  /** Milliseconds that the store may cost a request. Default 50, twice that while connected. */
  readonly budgetMs?: number
  /** Describes an error of the store; undefined: no response in time. */
  troubleOf(error: unknown): SharedTrouble
  /** Another replica purged: remove matching entries. */
  onPurge(filter: PurgeFilter): void
  /** Another replica detected a changed secret of this config; undefined: of any. */
  onRotation(config: string | undefined): void
}

/**
 * Creates the sharing of credentials: one call per key in all replicas. The holder of the lock fetches, the others
 * read its sealed result. Without the store, each replica fetches its own.
 */
export function createSharedCredentials<V>(options: SharedCredentialsOptions<V>): SharedCredentials<V> {
  const { store, seal, codec, clock, log, metrics, random } = options
  const outcomes = metrics.counter(
    'extauth_shared_credentials_total',
    'Credentials found in the shared store, fetched for all replicas, or fetched locally because of the store.',
    ['outcome'],
  )
  const refused = createTtlLru<{ readonly digest: string; readonly atMs: EpochMs }>({ clock, maxEntries: MOST_REFUSED })
  const recordOf = (key: string) => `credential:${key}`
  const invalidations = createInvalidationChannel({
    ...options,
    onPurge: (filter) => options.onPurge(filter),
    onRotation: (config) => options.onRotation(config),
    onTrouble: (error) => gate.degrade(options.troubleOf(error)),
  })
  /** Tests the operations that a credential needs: a read, a lock, and a write under it. */
  const probe = async (): Promise<void> => {
    const before = await store.get(PROBE)
    const claim = await store.getOrLock(PROBE, before?.version, LOCK_MS)
    if (claim.kind === 'lock') await claim.held.finish(Buffer.alloc(0), PROBE_TTL_MS)
    else await store.put(PROBE, Buffer.alloc(0), PROBE_TTL_MS)
  }
  const gate = createSharedGate({
    log,
    metrics,
    budgetMs: options.budgetMs ?? 50,
    isConnected: () => store.health().isUp,
    troubleOf: (error) => options.troubleOf(error),
    probe,
    async recover() {
      await invalidations.catchUp()
      void backlog.handOver()
    },
  })

  /** Throws the errors of the store. */
  const write = async (key: string, entry: SharedEntry<V>, held?: SharedLock): Promise<void> => {
    const record = recordOf(key)
    const ttlMs = Math.min(LONGEST_SHARED_MS, Math.floor(entry.expiresAtMs - clock.now()))
    if (ttlMs < 1) return held?.release()
    const sealed = sealEntry(record, entry, seal, codec)
    await (held === undefined ? store.put(record, sealed, ttlMs) : held.finish(sealed, ttlMs))
  }
  const backlog = createSharedBacklog<V>(clock, write)

  /** Writes with `put`, or as the holder of the lock. No caller waits, but the result is counted. */
  const put = async (key: string, entry: SharedEntry<V>, held?: SharedLock): Promise<void> => {
    await gate.run('write', async () => {
      try {
        await write(key, entry, held)
      } catch (error) {
        void held?.release()
        backlog.add(key, entry)
        throw error
      }
    })
  }

  const read = async (slot: CacheSlot<V>, stored: SharedRecord, current: V | undefined) => {
    const entry = await openEntry(recordOf(slot.key), stored.value, seal, codec)
    if (entry === undefined) {
      outcomes.with('unreadable').add()
      return undefined
    }
    const digest = digestOf(entry.value, codec)
    const known = refused.peek(slot.key)
    const isRefused =
      known !== undefined && (digest === known.digest || entry.obtainedAtMs < known.atMs - TRUSTED_BEFORE_MS)
    const isOld = isRefused || (current !== undefined && digest === digestOf(current, codec))
    invalidations.saw(entry.epoch)
    // The clock of the other replica may be ahead: the store's time to live applies.
    const expiresAtMs = Math.min(entry.expiresAtMs, clock.now() + stored.leftMs)
    const aheadMs = entry.expiresAtMs - expiresAtMs
    const bounded = { ...entry, expiresAtMs, obtainedAtMs: Math.min(entry.obtainedAtMs - aheadMs, clock.now()) }
    if (isOld || !isLive(bounded, clock.now()) || invalidations.covers(slot, entry.epoch)) return undefined
    outcomes.with('found').add()
    return { ...bounded, isShared: true }
  }

  const make = async (slot: CacheSlot<V>, endsAtMs: MonotonicMs): Promise<SharedEntry<V>> => {
    const { epoch } = invalidations
    const { value, expiresAtMs } = await slot.fetch(endsAtMs)
    return { epoch, obtainedAtMs: clock.now(), expiresAtMs, value }
  }

  const makeAlone = async (slot: CacheSlot<V>, endsAtMs: MonotonicMs): Promise<FetchedValue<V>> => {
    outcomes.with('alone').add()
    const entry = await make(slot, endsAtMs)
    if (gate.isDegraded) backlog.add(slot.key, entry)
    else void put(slot.key, entry)
    return entry
  }

  /** No caller waits for the write: the value is already available. */
  const makeForAll = async (slot: CacheSlot<V>, held: SharedLock, endsAtMs: MonotonicMs): Promise<FetchedValue<V>> => {
    try {
      const entry = await make(slot, endsAtMs)
      outcomes.with('made').add()
      void put(slot.key, entry, held)
      return entry
    } catch (error) {
      void held.release()
      throw error
    }
  }

  /** The stored version if it is no newer than `current`. */
  const look = async (slot: CacheSlot<V>, current: V) => {
    const got = await gate.run('read', () => store.get(recordOf(slot.key)))
    const stored = got.isDone ? got.value : undefined
    const entry = stored && (await read(slot, stored, current))
    return { entry, version: stored?.version }
  }

  const findOrMake = async (slot: CacheSlot<V>, current: V | undefined, endsAtMs: MonotonicMs) => {
    if (gate.isDegraded) return undefined
    if (!invalidations.isKnown && !(await gate.run('read', () => invalidations.known)).isDone) return undefined
    const seen = current === undefined ? undefined : await look(slot, current)
    if (seen?.entry !== undefined) return seen.entry
    let stale = seen?.version
    let lookMs = FIRST_LOOK_MS
    let unusable = 0
    const leftMs = endsAtMs - monotonicNow()
    const waitsUntilMs = endsAtMs - Math.min(OWN_CALL_MS, leftMs / 2)
    while (!gate.isDegraded && monotonicNow() < waitsUntilMs) {
      const claim = await gate.run(
        'lock',
        () => store.getOrLock(recordOf(slot.key), stale, LOCK_MS),
        (late) => (late.kind === 'lock' ? void late.held.release() : undefined),
      )
      if (!claim.isDone) return undefined
      if (claim.value.kind === 'lock') return makeForAll(slot, claim.value.held, endsAtMs)
      if (claim.value.kind === 'value') {
        const entry = await read(slot, claim.value.stored, current)
        if (entry !== undefined) return entry
        stale = claim.value.stored.version
        unusable += 1
        // A lock to replace it is requested once; another unusable value is not replaced.
        if (unusable < 2) continue
      }
      await pause(lookMs * (0.5 + random()))
      lookMs = Math.min(LONGEST_LOOK_MS, lookMs * 1.5)
    }
    return undefined
  }

  return {
    fetch: async (slot, current, endsAtMs) => (await findOrMake(slot, current, endsAtMs)) ?? makeAlone(slot, endsAtMs),
    reject(slot, value) {
      const atMs = clock.now()
      refused.set(slot.key, { digest: digestOf(value, codec), atMs }, atMs + LONGEST_SHARED_MS)
    },
    purge: (filter) => invalidations.purge(filter),
    announceRotation: (config) => invalidations.announceRotation(config),
    get problem() {
      return gate.problem
    },
    close() {
      backlog.close()
      invalidations.close()
      gate.close()
    },
  }
}
