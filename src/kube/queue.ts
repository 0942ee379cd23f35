import { causeOf, type Log } from '../core/index.ts'
import { backoffMs } from './backoff.ts'
import { KubeError } from './kube-error.ts'
import { systemTimers, type Timers } from './timers.ts'

export interface QueueOptions {
  /** Works on one key; gives after how many milliseconds to look at it again, or nothing. What it throws is tried again. */
  readonly work: (key: string) => Promise<number | undefined>
  /** Keys worked on at the same time; one key never is. Default 4. */
  readonly concurrency?: number
  /** Milliseconds that a failure's own wish to be retried later is honoured (Retry-After); absent for others. */
  readonly retryAfterMs?: (error: unknown) => number | undefined
  readonly log: Log
  /** 0 ≤ n < 1. Default Math.random. */
  readonly random?: () => number
  readonly timers?: Timers
}

/** Keys that want attention: each waits once, is worked on by one at a time, and comes back later after a failure. */
export interface Queue {
  /** Soon; a key that is being worked on comes once more afterwards. */
  add(key: string): void
  /** Keys that wait now, those that come back later not counted. */
  readonly depth: number
  /** Resolves when nothing waits and nothing runs (keys that come back later do not count). For tests and shutdown. */
  idle(): Promise<void>
  /** Takes nothing more; resolves when what runs is done. */
  close(): Promise<void>
}

const FIRST_PAUSE_MS = 5
const MOST_PAUSE_MS = 300_000
const DEFAULT_CONCURRENCY = 4
/** Milliseconds between tries again, all keys together, and how many may come at once before that. */
const RETRY_SPACING_MS = 20
const RETRY_BURST = 50

/** A work queue of keys with back-off from 5 ms to 5 min per key, and at most 50 tries again a second of all together. */
export function createQueue(options: QueueOptions): Queue {
  const { work, log, concurrency = DEFAULT_CONCURRENCY, random = Math.random, timers = systemTimers } = options
  const waiting = new Set<string>()
  const running = new Set<string>()
  const again = new Set<string>()
  const failures = new Map<string, number>()
  const later = new Map<string, () => void>()
  let idlers: (() => void)[] = []
  let isClosed = false
  /** When the next try again has its place, if places were given out evenly. */
  let nextRetryMs = 0

  /** Milliseconds until a try again has a place: thousands of keys that fail together must not come back together. */
  const untilTurn = (): number => {
    const now = timers.now()
    // So far ahead it can only be by a clock that was set back.
    const place = nextRetryMs > now + MOST_PAUSE_MS ? now : nextRetryMs
    nextRetryMs = Math.max(place, now - RETRY_BURST * RETRY_SPACING_MS) + RETRY_SPACING_MS
    return Math.max(0, nextRetryMs - now)
  }

  const settle = (): void => {
    if (running.size > 0 || (waiting.size > 0 && !isClosed)) return
    for (const resolve of idlers) resolve()
    idlers = []
  }

  const addLater = (key: string, ms: number): void => {
    later.get(key)?.()
    later.set(
      key,
      timers.after(ms, () => {
        later.delete(key)
        add(key)
      }),
    )
  }

  const run = async (key: string): Promise<void> => {
    try {
      const againMs = await work(key)
      failures.delete(key)
      if (againMs !== undefined && !isClosed && !again.has(key)) addLater(key, againMs)
    } catch (error) {
      const count = (failures.get(key) ?? 0) + 1
      failures.set(key, count)
      const wishMs = options.retryAfterMs?.(error) ?? 0
      const pauseMs = backoffMs(count, { firstMs: FIRST_PAUSE_MS, mostMs: MOST_PAUSE_MS, random })
      // One line at the first failure and at every doubling: a key that fails for hours must not fill the log.
      if ((count & (count - 1)) === 0)
        log.warn({ key, failures: count, detail: detailOf(error), cause: causeOf(error) }, 'will be tried again')
      again.delete(key)
      if (!isClosed) addLater(key, Math.max(pauseMs, wishMs, untilTurn()))
    } finally {
      running.delete(key)
      if (again.delete(key)) add(key)
      pump()
      settle()
    }
  }

  const pump = (): void => {
    if (isClosed) return
    for (const key of waiting) {
      if (running.size >= concurrency) return
      waiting.delete(key)
      running.add(key)
      void run(key)
    }
  }

  const add = (key: string): void => {
    if (isClosed) return
    later.get(key)?.()
    later.delete(key)
    if (running.has(key)) again.add(key)
    else waiting.add(key)
    pump()
  }

  return {
    add,
    get depth() {
      return waiting.size
    },
    idle: () =>
      new Promise((resolve) => {
        idlers.push(resolve)
        settle()
      }),
    close() {
      isClosed = true
      waiting.clear()
      again.clear()
      for (const cancel of later.values()) cancel()
      later.clear()
      return new Promise((resolve) => {
        idlers.push(resolve)
        settle()
      })
    },
  }
}

/** What the API server says about an object that it refuses. */
const detailOf = (error: unknown): string | undefined =>
  error instanceof KubeError && error.status > 0 ? error.message : undefined
