import { setTimeout as pause } from 'node:timers/promises'
import { createFreshness } from '../../cache/index.ts'
import { Failure, type Clock, type Log } from '../../core/index.ts'
import { createSealedRecords, StoreError, type Seal, type Store } from '../../storage/index.ts'
import { storeFailure } from '../store-failure.ts'

/** Which sessions were ended before their time, on every replica. */
export interface EndedSessions {
  /**
   * Throws `store_unavailable` while the list is not known: before it was read once, and when neither messages nor the list
   * itself could be read for ten seconds.
   */
  has(tsid: string): boolean
  /** Takes effect at once here, by message on other replicas, and by the list in the store where messages are not received. */
  add(tsid: string): Promise<void>
  /** Resolves when the store was asked for the list for the first time, whatever it answered. */
  opened(): Promise<void>
  close(): void
}

export interface EndedOptions {
  readonly store: Store
  /** Nobody else adds to the list, or takes from it what a replica knows. */
  readonly seal: Seal
  readonly clock: Clock
  readonly log: Log
  /** For how long a session's tokens may be shown after its end: the longest life of a token of ours, milliseconds. */
  readonly keepMs: number
  /** Called once for each session of which this replica learns that it has ended. */
  readonly onEnded: (tsid: string) => void
}

const CHANNEL = 'sessions-ended'
/** Instead of a name: who knows more than the list says writes it down; the list is to be read again. */
const JOINED = 'joined!'
const RESTORED = 'restored!'
/** While messages are not received, the list is read so often. */
const READ_MS = 1_000
/** Every so many of these: what the store lost is written again, and sealed with the first secret. */
const RESTORE_EACH = 60
/** The list is in parts, so that many at once can be added and none grows past what a value may have. */
const PARTS = 16
const MOST_PER_PART = 20_000
/** Every try that fails means that somebody else was added. */
const TRIES = 50
const LONGEST_PAUSE_MS = 50

type Part = Record<string, number>

const KEYS = Array.from({ length: PARTS }, (_, part) => `ended:${part}`)
const partOf = (tsid: string): string => `ended:${(tsid.codePointAt(tsid.length - 2) ?? 0) % PARTS}`

/** The part with more and without those whose time is over; the soonest to end go where there are too many. */
function withMore(part: Part, more: readonly (readonly [string, number])[], nowMs: number): Part {
  const live = Object.entries({ ...part, ...Object.fromEntries(more) }).filter(([, until]) => until > nowMs)
  if (live.length > MOST_PER_PART) live.sort(([, one], [, other]) => other - one).splice(MOST_PER_PART)
  return Object.fromEntries(live)
}

/** The list of ended sessions: held in this process, kept in the store, told by messages. */
export function createEndedSessions({ store, seal, clock, log, keepMs, onEnded }: EndedOptions): EndedSessions {
  const records = createSealedRecords(seal)
  const ended = new Map<string, number>()
  const freshness = createFreshness(() => subscription.isActive)
  let loading: Promise<void> | undefined
  let isFailing = false
  let isClosed = false

  const learn = (tsid: string, untilMs: number) => {
    if (ended.has(tsid) || untilMs <= clock.now()) return
    ended.set(tsid, untilMs)
    onEnded(tsid)
    sweep()
  }

  // In the order in which they were learned, which is nearly that of their ends.
  const sweep = () => {
    for (const [tsid, untilMs] of ended) {
      if (untilMs > clock.now()) return
      ended.delete(tsid)
    }
  }

  /** What can't be opened counts as gone, as if it had been deleted: who knows more writes it again. */
  const read = async (key: string) => {
    const stored = await store.get(key)
    const opened = await records.open<Part>(key, stored).catch((error: unknown) => {
      if (error instanceof StoreError && error.kind === 'unknown_key') return undefined
      throw error
    })
    return { part: opened?.record ?? {}, isCurrent: opened?.isCurrent ?? true, version: stored?.version }
  }

  const loadOnce = async (): Promise<void> => {
    const startedAt = performance.now()
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
      log.warn({ reason: kind }, 'the list of ended sessions could not be read')
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
   * A writer of the store can shorten the list, or put an older one back: what is known here is written again. So is what is
   * sealed with a secret that is not the first: it may be removed.
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
    log.warn({}, 'the store had lost sessions that were ended; they are written again')
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
    has(tsid) {
      if (ended.size > 0 && ended.has(tsid)) return true
      if (!freshness.isFresh)
        throw new Failure('store_unavailable', {
          detail: 'the list of ended sessions cannot be read',
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
