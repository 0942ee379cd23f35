import { setTimeout as pause } from 'node:timers/promises'
import { after, type MonotonicMs, monotonicNow } from '../../core/index.ts'
import { StoreError } from '../port.ts'
import type { Endpoint, RedisConfig, RedisRuntime } from './config.ts'
import type { Connection } from './connection.ts'
import { withDeadline } from './deadline.ts'
import type { Master } from './master.ts'
import { troubleOf } from '../trouble.ts'
import { ReplyError } from './reply-errors.ts'

const FIRST_PAUSE_MS = 50
const LONGEST_PAUSE_MS = 1_000
/** Minimum duration of a healthy connection: the next attempt is not delayed. */
const GOOD_FOR_MS = 5_000
/** Time for operations to wait for a reconnect after a loss; later ones fail at once. */
const PATIENCE_MS = 10_000
/** Maximum number of waiting operations per link. */
const MOST_WAITING = 2_000

const BOTH_TIMEOUTS = { name: 'readTimeout or writeTimeout', of: 'the storage' }

/** Runs a write with the configured durability. */
export type LastingWrite = (work: (connection: Connection) => Promise<unknown>, options: UseOptions) => Promise<unknown>

export interface UseOptions {
  /** Idempotent: repeated if the connection is lost before the reply. */
  readonly isRepeatable: boolean
}

/** A connection to the master that reconnects after losses. */
export interface Link {
  /** Runs `work` on the connection. Throws `StoreError` within the sum of read and write timeouts. */
  use<T>(work: (connection: Connection) => Promise<T>, options: UseOptions): Promise<T>
  readonly isUp: boolean
  /** Why there is no connection, as text. */
  readonly problem: string | undefined
  /** Address of the last connection or attempt. */
  readonly endpoint: Endpoint | undefined
  close(): void
}

export interface LinkOptions {
  readonly master: Master
  readonly config: RedisConfig
  readonly runtime: RedisRuntime
  /** Name of the link in logs and metrics. */
  readonly purpose: 'commands' | 'messages' | 'durable writes'
  /** Called with a new connection before its use; `isFirst` is false after a loss. */
  onConnection?(connection: Connection, isFirst: boolean): Promise<void>
}

/**
 * Connects at once and reconnects forever, with pauses from 50 ms to 1 s and jitter, so that replicas do not reconnect
 * in step.
 */
export function createLink(options: LinkOptions): Link {
  const { master, config, purpose } = options
  const { log, metrics, random } = options.runtime
  const connects = metrics.counter('extauth_store_connects_total', 'Attempts to connect to the store.', [
    'purpose',
    'outcome',
  ])
  const up = metrics.gauge('extauth_store_connected', 'Whether there is a connection to the store.', ['purpose'], 'min')
  let connection: Connection | undefined
  let failure: StoreError = new StoreError('unavailable', { cause: 'not connected yet' })
  let patientUntil = Infinity
  let endpoint: Endpoint | undefined
  let arrivals: (() => void)[] = []
  let waiting = 0
  const ending = new AbortController()

  const notifyAll = () => {
    const waiting = arrivals
    arrivals = []
    for (const notify of waiting) notify()
  }

  const attempt = async (isFirst: boolean): Promise<Connection | undefined> => {
    let made: Connection | undefined
    try {
      made = await master.connect()
      endpoint = made.endpoint
      await options.onConnection?.(made, isFirst)
      connects.with(purpose, 'ok').add()
      return made
    } catch (error) {
      made?.destroy()
      const next = error instanceof StoreError ? error : new StoreError('unavailable', { cause: 'secret_unavailable' })
      const isNews = describe(next) !== describe(failure)
      connects.with(purpose, next.kind).add()
      failure = next
      endpoint = next.endpoint ?? endpoint
      if (isNews) log.warn({ purpose, reason: describe(next), ...troubleOf(next) }, 'store unavailable')
      return undefined
    }
  }

  const run = async () => {
    let pauseMs = FIRST_PAUSE_MS
    let isFirst = true
    while (!ending.signal.aborted) {
      const next = await attempt(isFirst)
      if (next !== undefined && !ending.signal.aborted) {
        const since = monotonicNow()
        connection = next
        up.with(purpose).set(1)
        if (!isFirst) log.info({ purpose }, 'store reconnected')
        isFirst = false
        notifyAll()
        await next.closed
        connection = undefined
        up.with(purpose).set(0)
        failure = new StoreError('unavailable', { cause: 'the connection was lost' })
        patientUntil = after(monotonicNow(), PATIENCE_MS)
        if (monotonicNow() - since >= GOOD_FOR_MS) pauseMs = FIRST_PAUSE_MS
      } else {
        next?.destroy()
        if (isFirst || monotonicNow() > patientUntil) {
          patientUntil = -Infinity
          notifyAll()
        }
      }
      await pause(pauseMs * (0.5 + random()), undefined, { signal: ending.signal }).catch(() => undefined)
      pauseMs = Math.min(LONGEST_PAUSE_MS, 2 * pauseMs)
    }
  }
  void run()

  /** The connection; waits for it as long as a reconnect is likely. */
  const arrived = async (untilMs: MonotonicMs): Promise<Connection> => {
    for (;;) {
      if (ending.signal.aborted) throw new StoreError('unavailable', { cause: 'closed' })
      if (connection?.isOpen === true) return connection
      const leftMs = Math.min(untilMs, patientUntil) - monotonicNow()
      if (leftMs <= 0) throw failure
      let notify = () => {}
      const arrival = new Promise<void>((resolve) => arrivals.push((notify = resolve)))
      try {
        await withDeadline(arrival, Math.min(leftMs, PATIENCE_MS), () => failure)
      } finally {
        arrivals = arrivals.filter((other) => other !== notify)
      }
    }
  }

  return {
    async use(work, { isRepeatable }) {
      if (waiting >= MOST_WAITING) throw new StoreError('overloaded')
      waiting += 1
      const amount = config.readTimeoutMs + config.writeTimeoutMs
      const untilMs = after(monotonicNow(), amount)
      const late = (): StoreError =>
        new StoreError('timeout', { limit: { amount, unit: 'ms', setting: BOTH_TIMEOUTS } })
      try {
        for (let isRepeated = false; ; isRepeated = true) {
          const current = await arrived(untilMs)
          try {
            return await withDeadline(work(current), untilMs - monotonicNow(), late)
          } catch (error) {
            if (error instanceof ReplyError && error.isElsewhere) current.destroy()
            const isUndone = error instanceof ReplyError && error.kind === 'unavailable'
            const isLost = error instanceof StoreError && error.kind === 'unavailable'
            if (isRepeated || !(isUndone || (isLost && isRepeatable))) throw error
          }
        }
      } finally {
        waiting -= 1
      }
    },
    get isUp() {
      return connection?.isOpen === true
    },
    get problem() {
      return connection?.isOpen === true ? undefined : describe(failure)
    },
    get endpoint() {
      return endpoint
    },
    close() {
      ending.abort()
      connection?.destroy()
      notifyAll()
    },
  }
}

/** The cause as created in this module: never text from outside. */
function describe(failure: StoreError): string {
  const { cause, kind } = failure
  if (failure instanceof ReplyError) return `the store rejects commands (${failure.code})`
  return typeof cause === 'string' ? cause : kind
}
