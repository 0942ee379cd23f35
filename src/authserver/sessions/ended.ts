import { setTimeout as pause } from 'node:timers/promises'
import { createFreshness } from '../../cache/index.ts'
import { type Clock, type EpochMs, Failure, type Log, monotonicNow } from '../../core/index.ts'
import { createSealedRecords, StoreError, type Seal, type Store } from '../../storage/index.ts'
import { storeFailure } from '../store-failure.ts'

/** The revoked sessions, on every replica. */
export interface EndedSessions {
  /**
   * Throws `store_unavailable` while the list is unknown: before the first read, and after ten seconds without
   * messages and reads.
   */
  has(tsid: string): boolean
  /** Whether this replica learned that the session ended; never throws, so that an unknown list counts as empty. */
  hasLearned(tsid: string): boolean
  /** Takes effect here immediately, on other replicas by message, or by the list in the store where messages fail. */
  add(tsid: string): Promise<void>
  /** Resolves after the first attempt to read the list, even a failed one. */
  opened(): Promise<void>
  close(): void
}

export interface EndedOptions {
  readonly store: Store
  /** Authenticates the list: only this server may add to it. */
  readonly seal: Seal
  readonly clock: Clock
  readonly log: Log
  /** Retention of a revoked session: the longest lifetime of an access token, milliseconds. */
  readonly keepMs: number
  /** Called once per session that this replica learns was revoked. */
  readonly onEnded: (tsid: string) => void
}

const CHANNEL = 'sessions-ended'
/** Message in place of an id: a replica that knows more writes the list, and the others reread it. */
const JOINED = 'joined!'
const RESTORED = 'restored!'
/** Poll interval of the list while messages fail. */
const READ_MS = 1_000
/** Every so many polls, lost entries are written again and sealed with the first secret. */
const RESTORE_EACH = 60
/** The list is split, so that concurrent additions succeed and no part exceeds the value size limit. */
const PARTS = 16
const MOST_PER_PART = 20_000
/** A failed attempt means that another entry was added concurrently. */
const TRIES = 50
const LONGEST_PAUSE_MS = 50

type Part = Record<string, number>

const KEYS = Array.from({ length: PARTS }, (_, part) => `ended:${part}`)
const partOf = (tsid: string): string => `ended:${(tsid.codePointAt(tsid.length - 2) ?? 0) % PARTS}`

/** The part with more entries and without expired ones; on overflow the first to expire are dropped. */
function withMore(part: Part, more: readonly (readonly [string, number])[], nowMs: EpochMs): Part {
  const live = Object.entries({ ...part, ...Object.fromEntries(more) }).filter(([, until]) => until > nowMs)
  if (live.length > MOST_PER_PART) live.sort(([, one], [, other]) => other - one).splice(MOST_PER_PART)
  return Object.fromEntries(live)
}

/** The list of revoked sessions: in memory, in the store, and distributed by messages. */
export function createEndedSessions({ store, seal, clock, log, keepMs, onEnded }: EndedOptions): EndedSessions {
  const records = createSealedRecords(seal)
  const ended = new Map<string, number>()
  const freshness = createFreshness(() => subscription.isActive)
  let loading: Promise<void> | undefined
  let isFailing = false
  let isClosed = false

  const learn = (tsid: string, untilMs: EpochMs) => {
    if (ended.has(tsid) || untilMs <= clock.now()) return
    ended.set(tsid, untilMs)
    onEnded(tsid)
    sweep()
  }

  // In the order of arrival, which nearly is that of expiry.
  const sweep = () => {
    for (const [tsid, untilMs] of ended) {
      if (untilMs > clock.now()) return
      ended.delete(tsid)
    }
  }

  /** A value that can't be opened counts as deleted; a replica that knows more writes it again. */
  const read = async (key: string) => {
    const stored = await store.get(key)
    const opened = await records.open<Part>(key, stored).catch((error: unknown) => {
      if (error instanceof StoreError && error.kind === 'unknown_key') return undefined
      throw error
    })
    return { part: opened?.record ?? {}, isCurrent: opened?.isCurrent ?? true, version: stored?.version }
  }

  const loadOnce = async (): Promise<void> => {
    const startedAt = monotonicNow()
    try {
      for (const { part } of await Promise.all(KEYS.map(read))) {
        for (const [tsid, untilMs] of Object.entries(part)) learn(tsid, untilMs)
      }
      freshness.read(startedAt)
      isFailing = false
    } catch (error) {
      if (isClosed || isFailing) return
      isFailing = true
      const kind = error instanceof StoreError ? error.kind : 'unreadable'
      log.warn({ reason: kind }, 'reading the revoked sessions failed')
    } finally {
      loading = undefined
    }
  }
  const load = (): Promise<void> => (loading ??= loadOnce())

  const record = async (key: string, more: readonly (readonly [string, number])[]): Promise<void> => {
    for (let tries = 0; tries < TRIES; tries++) {
      const { part, version } = await read(key)
      const value = records.write(key, withMore(part, more, clock.now()))
      if (await store.compareAndSet(key, version, value, keepMs)) return
      await pause(Math.min(LONGEST_PAUSE_MS, tries))
    }
    throw new StoreError('overloaded')
  }

  /**
   * A writer of the store can truncate or roll back the list: known entries are written again, as is anything sealed
   * with a secret other than the first, which may be removed.
   */
  const restore = async (): Promise<void> => {
    const now = clock.now()
    const known = [...ended].filter(([, untilMs]) => untilMs > now)
    if (known.length === 0) return
    let isRestored = false
    for (const key of KEYS) {
      const mine = known.filter(([tsid]) => partOf(tsid) === key)
      const { part, isCurrent } = mine.length === 0 ? { part: {}, isCurrent: true } : await read(key)
      const missing = mine.filter(([tsid]) => !Object.hasOwn(part, tsid))
      const isFull = Object.keys(part).length + missing.length > MOST_PER_PART
      if ((missing.length === 0 || isFull) && isCurrent) continue
      await record(key, isFull ? [] : missing)
      isRestored ||= missing.length > 0 && !isFull
    }
    if (!isRestored) return
    log.warn({}, 'the store lost revoked sessions; restored')
    await store.publish(CHANNEL, RESTORED)
  }
  function readAgain() {
    freshness.missed()
    void load()
  }
  const restoring = () => void restore().catch(() => undefined)

  const subscription = store.subscribe(CHANNEL, {
    onMessage(message) {
      if (message === JOINED) restoring()
      else if (message === RESTORED) readAgain()
      else learn(message, clock.now() + keepMs)
    },
    onGap: readAgain,
  })
  let ticks = 0
  const watching = setInterval(() => {
    if (!freshness.isCaughtUp) void load()
    ticks = (ticks + 1) % RESTORE_EACH
    if (ticks === 0) restoring()
  }, READ_MS).unref()
  const open = async () => {
    await load()
    await store.publish(CHANNEL, JOINED).catch(() => undefined)
  }
  const opening = open()

  return {
    hasLearned: (tsid) => ended.has(tsid),
    has(tsid) {
      if (ended.size > 0 && ended.has(tsid)) return true
      if (!freshness.isFresh)
        throw new Failure('store_unavailable', {
          detail: 'the list of revoked sessions cannot be read',
          retryAfterSeconds: 1,
        })
      return false
    },
    async add(tsid) {
      const untilMs = clock.now() + keepMs
      learn(tsid, untilMs)
      try {
        const receivers = await store.publish(CHANNEL, tsid)
        await record(partOf(tsid), [[tsid, untilMs]])
        log.info({ receivers }, 'session revoked')
      } catch (error) {
        throw storeFailure(error)
      }
    },
    opened: () => opening,
    close() {
      isClosed = true
      subscription.close()
      clearInterval(watching)
    },
  }
}
