import type { Log, Metrics } from '../core/index.ts'
import type { SharedTrouble } from './shared-ports.ts'
import { createResponsiveTime } from './shared-time.ts'

/** So many failures in a row: nobody waits for the store any more. */
const FAILURES_BEFORE_ALONE = 3
const FIRST_PROBE_MS = 100
/** Between probes of one absence, and before the first probe of one that followed another at once. */
const LONGEST_PROBE_MS = 1_000
const LONGEST_FIRST_PROBE_MS = 30_000
/** A store that was used for so long without leaving it again was well. */
const WELL_FOR_MS = 10_000

/** A store may do one kind and refuse another: failures in a row are counted for each. */
export type OperationKind = 'read' | 'lock' | 'write'

export type Gated<T> = { readonly isDone: true; readonly value: T } | { readonly isDone: false }

/** Stands between requests and the store: a slow or missing store costs a request so much and no more. */
export interface SharedGate {
  /** True while nobody asks the store because it doesn't answer. */
  readonly isAlone: boolean
  /**
   * What `operation` gives within the budget, or within a second one while the connection is up. What comes later is handed to
   * `onLate`. Never rejects.
   */
  run<T>(kind: OperationKind, operation: () => Promise<T>, onLate?: (value: T) => void): Promise<Gated<T>>
  /** Why the store is not used now, for people. */
  readonly problem: string | undefined
  /** What must be known before the store may be used can't be learnt: goes alone at once. */
  goAlone(trouble: SharedTrouble): void
  close(): void
}

export interface SharedGateOptions {
  readonly log: Log
  readonly metrics: Metrics
  /** For one operation, in milliseconds; time in which the event loop of this process did not run doesn't count. */
  readonly budgetMs: number
  /** Whether there is a connection: then an answer may come yet. */
  isConnected(): boolean
  /** Why an operation failed; undefined: it took too long. */
  troubleOf(error: unknown): SharedTrouble
  /** Writes to the store, asked now and then while alone; when that succeeds within the budget, `rejoin` comes next. */
  probe(): Promise<void>
  /** Learns what was missed; when that succeeds the store is used again. */
  rejoin(): Promise<void>
}

/**
 * Goes alone after three failures in a row of one kind, where operations that were in flight together count as one, and comes back when a
 * probe succeeds: 0.1 s later, then up to 1 s. Who leaves soon after coming back waits twice as long as before, up to 30 s.
 */
export function createSharedGate(options: SharedGateOptions): SharedGate {
  const { log, metrics, budgetMs } = options
  const alone = metrics
    .gauge(
      'extauth_shared_credentials_alone',
      'Whether this replica goes on without the store of shared credentials.',
      [],
      'max',
    )
    .with()
  const departures = metrics.counter(
    'extauth_shared_credentials_departures_total',
    'How often this replica went on without the store of shared credentials, by what was wrong with it.',
    ['cause'],
  )
  const time = createResponsiveTime()
  const failures = { read: 0, lock: 0, write: 0 }
  let failedAt = -Infinity
  let trouble: SharedTrouble | undefined
  let isAlone = false
  let isClosed = false
  let backAt = -Infinity
  let firstProbeMs = FIRST_PROBE_MS
  let probing: ReturnType<typeof setTimeout> | undefined
  alone.set(0)

  const isWell = async (): Promise<boolean> => {
    const watch = time.start()
    try {
      await options.probe()
      if (watch.spentMs > budgetMs) return false
      await options.rejoin()
      return true
    } catch {
      return false
    } finally {
      watch.stop()
    }
  }
  const probeIn = (ms: number) => {
    const look = async () => {
      const isBack = await isWell()
      if (isClosed) return
      if (isBack) comeBack()
      else probeIn(Math.min(Math.max(LONGEST_PROBE_MS, firstProbeMs), ms * 2))
    }
    probing = setTimeout(() => void look(), ms)
    probing.unref()
  }
  const comeBack = () => {
    isAlone = false
    trouble = undefined
    Object.assign(failures, { read: 0, lock: 0, write: 0 })
    backAt = performance.now()
    alone.set(0)
    log.info({}, 'credentials are shared with the other replicas again')
  }
  const fail = (kind: OperationKind, startedAt: number, cause: SharedTrouble) => {
    if (startedAt < failedAt) return
    failedAt = performance.now()
    failures[kind] += 1
    if (failures[kind] >= FAILURES_BEFORE_ALONE) goAlone(cause)
  }
  const goAlone = (cause: SharedTrouble) => {
    if (isAlone || isClosed) return
    isAlone = true
    trouble = cause
    alone.set(1)
    departures.with(cause.cause).add()
    const wasWell = performance.now() - backAt >= WELL_FOR_MS
    firstProbeMs = wasWell ? FIRST_PROBE_MS : Math.min(LONGEST_FIRST_PROBE_MS, 2 * firstProbeMs)
    log.warn({ ...cause }, 'the store of shared credentials cannot be used: this replica goes on alone')
    probeIn(firstProbeMs)
  }

  return {
    get isAlone() {
      return isAlone
    },
    get problem() {
      return trouble?.problem
    },
    run(kind, operation, onLate) {
      return new Promise((resolve) => {
        const startedAt = performance.now()
        let isOver = false
        let isLate = false
        const end = () => {
          isOver = true
          watch.stop()
        }
        const giveUp = () => {
          end()
          resolve({ isDone: false })
        }
        const judge = () => {
          if (isOver || watch.spentMs < budgetMs) return
          if (!isLate) fail(kind, startedAt, options.troubleOf(undefined))
          isLate = true
          if (watch.spentMs >= 2 * budgetMs || !options.isConnected()) giveUp()
        }
        const watch = time.start(judge)
        const attempt = async () => {
          try {
            const value = await operation()
            if (isOver) return onLate?.(value)
            end()
            if (!isLate) failures[kind] = 0
            resolve({ isDone: true, value })
          } catch (error) {
            if (isOver) return
            if (!isLate) fail(kind, startedAt, options.troubleOf(error))
            giveUp()
          }
        }
        void attempt()
      })
    },
    goAlone,
    close() {
      isClosed = true
      clearTimeout(probing)
    },
  }
}
