import { setTimeout as pause } from 'node:timers/promises'
import type { Clock, Log, Metrics } from '../core/index.ts'
import { digestOf, isLive, openEntry, sealEntry, type SharedEntry } from './shared-entry.ts'
import { createSharedGate } from './shared-gate.ts'
import { createPurgeMarks, LONGEST_SHARED_MS } from './shared-marks.ts'
import type {
  FetchedValue,
  SharedCodec,
  SharedCredentials,
  SharedLock,
  SharedSeal,
  SharedStore,
} from './shared-ports.ts'
import type { CacheSlot, PurgeFilter } from './slot.ts'
import { createTtlLru } from './ttl-lru.ts'

const CHANNEL = 'credentials'
const PURGED = 'purged'
const ROTATED = 'rotated '
/** The maker of a value says so often that it lives; that long after its death another one begins. */
const LOCK_MS = 3_000
const FIRST_LOOK_MS = 15
const LONGEST_LOOK_MS = 250
/** Values that were made while the store was away; they are shared when it is back. */
const MOST_UNSHARED = 10_000
const PUTS_AT_ONCE = 100

export interface SharedCredentialsOptions<V> {
  readonly store: SharedStore
  readonly seal: SharedSeal
  readonly codec: SharedCodec<V>
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
  readonly random: () => number
  /** What the store may cost a request, in milliseconds. Default 50. */
  readonly budgetMs?: number
  /** Another replica purged: forget what matches. */
  onPurge(filter: PurgeFilter): void
  /** Another replica saw a secret of this config change; undefined: it may have been any. */
  onRotation(config: string | undefined): void
}

/**
 * One call per key in a whole fleet: the replica that holds the lock fetches, the others read what it stored, sealed. Whatever
 * the store does, a caller gets its credential: at worst each replica fetches its own.
 */
export function createSharedCredentials<V>(options: SharedCredentialsOptions<V>): SharedCredentials<V> {
  const { store, seal, codec, clock, log, metrics, random } = options
  const outcomes = metrics.counter(
    'extauth_shared_credentials_total',
    'Credentials that were found in the shared store, made for all replicas, or made alone because of the store.',
    ['outcome'],
  )
  const refused = createTtlLru<string>({ clock, maxEntries: MOST_UNSHARED })
  const unshared = createTtlLru<SharedEntry<V>>({ clock, maxEntries: MOST_UNSHARED })
  const untold = new Set<string>()
  const marks = createPurgeMarks({ store, seal, clock, onPurge: (filter) => options.onPurge(filter) })
  const recordOf = (key: string) => `credential:${key}`
  let isClosed = false

  /** What others purged, then what nobody could be told while the store was away. */
  const catchUp = async () => {
    await marks.sync()
    for (const message of untold) {
      await store.publish(CHANNEL, message)
      untold.delete(message)
    }
    void shareLate()
  }
  /** A few at a time, while new ones are shared already. */
  const shareLate = async () => {
    const late = Array.from(unshared.entries())
    for (let at = 0; at < late.length; at += PUTS_AT_ONCE) {
      const some = late.slice(at, at + PUTS_AT_ONCE)
      for (const [key] of some) unshared.delete(key)
      await Promise.all(some.map(([key, entry]) => put(key, entry)))
    }
  }
  /** Nothing is taken from the store before it is known what was purged meanwhile. */
  let known: Promise<void> = Promise.resolve()
  let isKnown = false
  const learn = () => {
    isKnown = false
    const learning = catchUp()
    known = learning
    const judge = async () => {
      try {
        await learning
        if (known === learning) isKnown = true
      } catch {
        gate.goAlone()
      }
    }
    void judge()
  }
  const probe = () => {
    learn()
    return known
  }
  const gate = createSharedGate({ log, metrics, budgetMs: options.budgetMs ?? 50, probe })

  /** Writes with `put`, or as the holder of the lock. */
  const put = async (key: string, entry: SharedEntry<V>, held?: SharedLock): Promise<void> => {
    const record = recordOf(key)
    const ttlMs = Math.min(LONGEST_SHARED_MS, Math.floor(entry.expiresAtMs - clock.now()))
    if (ttlMs < 1) return held?.release()
    try {
      const sealed = sealEntry(record, entry, seal, codec)
      await (held === undefined ? store.put(record, sealed, ttlMs) : held.finish(sealed, ttlMs))
    } catch {
      void held?.release()
      if (!isClosed) unshared.set(key, entry, entry.expiresAtMs)
    }
  }

  const read = async (slot: CacheSlot<V>, sealed: Buffer, current: V | undefined) => {
    const entry = await openEntry(recordOf(slot.key), sealed, seal, codec)
    if (entry === undefined) {
      outcomes.with('unreadable').add()
      return undefined
    }
    const digest = digestOf(entry.value, codec)
    const isOld = digest === refused.peek(slot.key) || (current !== undefined && digest === digestOf(current, codec))
    if (isOld || !isLive(entry, clock.now()) || marks.covers(slot, entry.epoch)) return undefined
    outcomes.with('found').add()
    return { ...entry, isShared: true }
  }

  const make = async (slot: CacheSlot<V>, endsAtMs: number): Promise<SharedEntry<V>> => {
    const { epoch } = marks
    const { value, expiresAtMs } = await slot.fetch(endsAtMs)
    return { epoch, obtainedAtMs: clock.now(), expiresAtMs, value }
  }

  const makeAlone = async (slot: CacheSlot<V>, endsAtMs: number): Promise<FetchedValue<V>> => {
    outcomes.with('alone').add()
    const entry = await make(slot, endsAtMs)
    if (gate.isAlone) unshared.set(slot.key, entry, entry.expiresAtMs)
    else void put(slot.key, entry)
    return entry
  }

  /** Nobody waits for what is written: the caller has its value already. */
  const makeForAll = async (slot: CacheSlot<V>, held: SharedLock, endsAtMs: number): Promise<FetchedValue<V>> => {
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

  /** The version of what is there when it is no newer than `current`. */
  const look = async (slot: CacheSlot<V>, current: V) => {
    const got = await gate.run(() => store.get(recordOf(slot.key)))
    const stored = got.isDone ? got.value : undefined
    const entry = stored && (await read(slot, stored.value, current))
    return { entry, version: stored?.version }
  }

  const findOrMake = async (slot: CacheSlot<V>, current: V | undefined, endsAtMs: number) => {
    if (gate.isAlone) return undefined
    if (!isKnown && !(await gate.run(() => known)).isDone) return undefined
    const seen = current === undefined ? undefined : await look(slot, current)
    if (seen?.entry !== undefined) return seen.entry
    let stale = seen?.version
    let lookMs = FIRST_LOOK_MS
    while (!gate.isAlone && performance.now() < endsAtMs) {
      const claim = await gate.run(
        () => store.getOrLock(recordOf(slot.key), stale, LOCK_MS),
        (late) => (late.kind === 'lock' ? void late.held.release() : undefined),
      )
      if (!claim.isDone) return undefined
      if (claim.value.kind === 'lock') return makeForAll(slot, claim.value.held, endsAtMs)
      if (claim.value.kind === 'value') {
        const entry = await read(slot, claim.value.stored.value, current)
        if (entry !== undefined) return entry
        stale = claim.value.stored.version
      } else {
        await pause(lookMs * (0.5 + random()))
        lookMs = Math.min(LONGEST_LOOK_MS, lookMs * 1.5)
      }
    }
    return undefined
  }

  const tell = async (message: string) => {
    try {
      if (message === PURGED) await marks.sync()
      await store.publish(CHANNEL, message)
    } catch {
      untold.add(message)
      log.warn({}, 'the other replicas cannot be told of a change now; they are as soon as the store answers')
      gate.goAlone()
    }
  }

  const subscription = store.subscribe(CHANNEL, {
    onMessage(message) {
      if (message === PURGED) learn()
      else if (message.startsWith(ROTATED)) options.onRotation(message.slice(ROTATED.length))
    },
    onGap() {
      learn()
      options.onRotation(undefined)
    },
  })
  learn()

  return {
    fetch: async (slot, current, endsAtMs) => (await findOrMake(slot, current, endsAtMs)) ?? makeAlone(slot, endsAtMs),
    reject(slot, value) {
      refused.set(slot.key, digestOf(value, codec), clock.now() + LONGEST_SHARED_MS)
    },
    purge(filter) {
      marks.add(filter)
      return tell(PURGED)
    },
    announceRotation: (config) => tell(`${ROTATED}${config}`),
    close() {
      isClosed = true
      subscription.close()
      gate.close()
    },
  }
}
