import { Failure, type Clock, type Log } from '../../core/index.ts'
import { createSealedRecords, StoreError, type Seal, type Store } from '../../storage/index.ts'
import { storeFailure } from '../store-failure.ts'

/** Which sessions were ended before their time, on every replica. */
export interface EndedSessions {
  /** Throws `store_unavailable` until this replica has seen the list once: who was logged out elsewhere is not known yet. */
  has(tsid: string): boolean
  /** Tells everybody: this replica at once, the others by message, those that don't hear it by the list in the store. */
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
const WATCH_MS = 60_000
/** The list is in parts, so that many at once can be added and none grows past what a value may have. */
const PARTS = 16
const MOST_PER_PART = 20_000
/** Every try that fails means that somebody else was added. */
const TRIES = 50
const RETRY_MS = 1000

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
  let isLoaded = false
  let retry: NodeJS.Timeout | undefined
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
    const part = await records.read<Part>(key, stored).catch((error: unknown) => {
      if (error instanceof StoreError && error.kind === 'unknown_key') return undefined
      throw error
    })
    return { part: part ?? {}, version: stored?.version }
  }

  const load = async (): Promise<void> => {
    try {
      for (const { part } of await Promise.all(KEYS.map(read))) {
        for (const [tsid, untilMs] of Object.entries(part)) learn(tsid, untilMs)
      }
      isLoaded = true
    } catch (error) {
      if (isClosed) return
      const kind = error instanceof StoreError ? error.kind : 'unreadable'
      log.warn({ reason: kind }, 'the list of ended sessions could not be read')
      retry = setTimeout(() => void load(), RETRY_MS).unref()
    }
  }

  const record = async (key: string, more: readonly (readonly [string, number])[]): Promise<void> => {
    for (let tries = 0; tries < TRIES; tries++) {
      const { part, version } = await read(key)
      const value = records.write(key, withMore(part, more, clock.now()))
      if (await store.compareAndSet(key, version, value, keepMs)) return
    }
    throw new StoreError('overloaded')
  }

  /** Who writes the store can shorten the list, or put an older one back: what is known here is written again. */
  const restore = async (): Promise<void> => {
    const now = clock.now()
    const known = [...ended].filter(([, untilMs]) => untilMs > now)
    if (known.length === 0) return
    let isRestored = false
    for (const key of KEYS) {
      const mine = known.filter(([tsid]) => partOf(tsid) === key)
      const { part } = mine.length === 0 ? { part: {} } : await read(key)
      const missing = mine.filter(([tsid]) => !Object.hasOwn(part, tsid))
      if (missing.length === 0 || Object.keys(part).length + missing.length > MOST_PER_PART) continue
      await record(key, missing)
      isRestored = true
    }
    if (!isRestored) return
    log.warn({}, 'the store had lost sessions that were ended; they are written again')
    await store.publish(CHANNEL, RESTORED)
  }
  const restoring = () => void restore().catch(() => undefined)

  const subscription = store.subscribe(CHANNEL, {
    onMessage(message) {
      if (message === JOINED) restoring()
      else if (message === RESTORED) void load()
      else learn(message, clock.now() + keepMs)
    },
    onGap: () => void load(),
  })
  const watching = setInterval(restoring, WATCH_MS).unref()
  const open = async () => {
    await load()
    await store.publish(CHANNEL, JOINED).catch(() => undefined)
  }
  const opening = open()

  return {
    has(tsid) {
      if (ended.size > 0 && ended.has(tsid)) return true
      if (!isLoaded)
        throw new Failure('store_unavailable', { detail: 'the list of ended sessions', retryAfterSeconds: 1 })
      return false
    },
    async add(tsid) {
      const untilMs = clock.now() + keepMs
      learn(tsid, untilMs)
      try {
        await store.publish(CHANNEL, tsid)
        await record(partOf(tsid), [[tsid, untilMs]])
      } catch (error) {
        throw storeFailure(error)
      }
    },
    opened: () => opening,
    close() {
      isClosed = true
      subscription.close()
      clearTimeout(retry)
      clearInterval(watching)
    },
  }
}
