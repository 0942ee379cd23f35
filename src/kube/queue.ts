import { causeOf, type Log } from '../core/index.ts'
import { backoffMs } from './backoff.ts'
import { KubeError } from './kube-error.ts'
import { systemTimers, type Timers } from './timers.ts'

export interface QueueOptions {
  /** Processes one key; returns milliseconds until the next time, or undefined. Errors are retried. */
  readonly work: (key: string) => Promise<number | undefined>
  /** Keys processed concurrently, each only once. Default 4. */
  readonly concurrency?: number
  /** Milliseconds of an error's Retry-After; undefined for others. */
  readonly retryAfterMs?: (error: unknown) => number | undefined
  readonly log: Log
  /** 0 ≤ n < 1. Default Math.random. */
  readonly random?: () => number
  readonly timers?: Timers
}

/** A work queue of keys. Each key is queued once, processed by one worker, and retried after an error. */
export interface Queue {
  /** Queues a key; one in process is queued again afterwards. */
  add(key: string): void
  /** Queued keys, without delayed ones. */
  readonly depth: number
  /** Resolves when no key is queued or in process; delayed keys do not count. For tests and shutdown. */
  idle(): Promise<void>
  /** Rejects new keys; resolves when those in process are done. */
  close(): Promise<void>
}

const FIRST_PAUSE_MS = 5
const MOST_PAUSE_MS = 300_000
const DEFAULT_CONCURRENCY = 4
/** Milliseconds between retries of all keys, and the burst before that. */
const RETRY_SPACING_MS = 20
const RETRY_BURST = 50

/** Creates a work queue with back-off from 5 ms to 5 min per key, and at most 50 retries a second in total. */
export function createQueue(options: QueueOptions): Queue {
  const { work, log, concurrency = DEFAULT_CONCURRENCY, random = Math.random, timers = systemTimers } = options
  const waiting = new Set<string>()
  const running = new Set<string>()
  const again = new Set<string>()
  const failures = new Map<string, number>()
  const later = new Map<string, () => void>()
  let idlers: (() => void)[] = []
  let isClosed = false
  /** Time of the next retry slot at an even rate. */
  let nextRetryMs = 0

  /** Milliseconds until the next retry slot: thousands of failed keys must not return together. */
  const untilTurn = (): number => {
    const now = timers.now()
    // So far ahead, the clock was set back.
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
      // Logged at the first failure and at every doubling: a key that fails for hours must not flood the log.
      if ((count & (count - 1)) === 0)
        log.warn(
          { key, failures: count, detail: detailOf(error), cause: causeOf(error) },
          'reconciliation failed, retrying',
        )
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

/** The API server's message about a rejected object. */
const detailOf = (error: unknown): string | undefined =>
  error instanceof KubeError && error.status > 0 ? error.message : undefined
