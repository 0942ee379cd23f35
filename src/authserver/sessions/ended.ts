import { Failure, type Clock, type Log } from '../../core/index.ts'
import { StoreError, type Store } from '../../storage/index.ts'
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
  readonly clock: Clock
  readonly log: Log
  /** For how long a session's tokens may be shown after its end: the longest life of an access token, milliseconds. */
  readonly keepMs: number
  /** Called once for each session of which this replica learns that it has ended. */
  readonly onEnded: (tsid: string) => void
}

const CHANNEL = 'sessions-ended'
/** The list is in parts, so that many at once can be added and none grows past what a value may have. */
const PARTS = 16
const MOST_PER_PART = 20_000
/** Every try that fails means that somebody else was added. */
const TRIES = 50
const RETRY_MS = 1000

type Part = Record<string, number>

const partOf = (tsid: string): string => `ended:${(tsid.codePointAt(tsid.length - 2) ?? 0) % PARTS}`

function read(value: Buffer | undefined): Part {
  return value === undefined ? {} : (JSON.parse(value.toString('utf8')) as Part)
}

/** The part with one more and without those whose time is over; the soonest to end go where there are too many. */
function withOne(part: Part, tsid: string, untilMs: number, nowMs: number): Part {
  const live = Object.entries(part).filter(([, until]) => until > nowMs)
  if (live.length >= MOST_PER_PART) live.sort(([, one], [, other]) => other - one).splice(MOST_PER_PART - 1)
  return Object.fromEntries([...live, [tsid, untilMs]])
}

/** The list of ended sessions: held in this process, kept in the store, told by messages. */
export function createEndedSessions({ store, clock, log, keepMs, onEnded }: EndedOptions): EndedSessions {
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

  const load = async (): Promise<void> => {
    try {
      const parts = Array.from({ length: PARTS }, async (_, part) => store.get(`ended:${part}`))
      for (const stored of await Promise.all(parts)) {
        for (const [tsid, untilMs] of Object.entries(read(stored?.value))) learn(tsid, untilMs)
      }
      isLoaded = true
    } catch (error) {
      if (isClosed) return
      const kind = error instanceof StoreError ? error.kind : 'unreadable'
      log.warn({ reason: kind }, 'the list of ended sessions could not be read')
      retry = setTimeout(() => void load(), RETRY_MS).unref()
    }
  }

  const record = async (tsid: string, untilMs: number): Promise<void> => {
    const key = partOf(tsid)
    for (let tries = 0; tries < TRIES; tries++) {
      const stored = await store.get(key)
      const value = Buffer.from(JSON.stringify(withOne(read(stored?.value), tsid, untilMs, clock.now())))
      if (await store.compareAndSet(key, stored?.version, value, keepMs)) return
    }
    throw new StoreError('overloaded')
  }

  const subscription = store.subscribe(CHANNEL, {
    onMessage: (tsid) => learn(tsid, clock.now() + keepMs),
    onGap: () => void load(),
  })
  const opening = load()

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
        await record(tsid, untilMs)
      } catch (error) {
        throw storeFailure(error)
      }
    },
    opened: () => opening,
    close() {
      isClosed = true
      subscription.close()
      clearTimeout(retry)
    },
  }
}
