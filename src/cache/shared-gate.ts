import { type Log, type Metrics, type MonotonicMs, monotonicNow } from '../core/index.ts'
import type { SharedTrouble } from './shared-ports.ts'
import { createResponsiveTime } from './shared-time.ts'

/** Consecutive failures before requests stop using the store. */
const FAILURES_BEFORE_DEGRADING = 3
const FIRST_PROBE_MS = 100
/** Maximum pause between probes of one outage, and before the first probe of a repeated one. */
const LONGEST_PROBE_MS = 1_000
const LONGEST_FIRST_PROBE_MS = 30_000
/** Minimum use without a failure for a healthy store. */
const WELL_FOR_MS = 10_000

/** A store may support one kind and reject another: consecutive failures are counted per kind. */
export type OperationKind = 'read' | 'lock' | 'write'

export type Gated<T> = { readonly isDone: true; readonly value: T } | { readonly isDone: false }

/** Limits what a slow or missing store costs a request. */
export interface SharedGate {
  /** True while the store is not used because of failures. */
  readonly isDegraded: boolean
  /**
   * Runs `operation` within the budget, or within a second one while connected. A late result goes to `onLate`. Never
   * rejects.
   */
  run<T>(kind: OperationKind, operation: () => Promise<T>, onLate?: (value: T) => void): Promise<Gated<T>>
  /** Why the store is not used, as text. */
  readonly problem: string | undefined
  /** Degrades at once: state that is required before using the store is unavailable. */
  degrade(trouble: SharedTrouble): void
  close(): void
}

export interface SharedGateOptions {
  readonly log: Log
  readonly metrics: Metrics
  /** Per operation in milliseconds, without time in which the event loop was blocked. */
  readonly budgetMs: number
  /** Whether there is a connection, so that a response may follow. */
  isConnected(): boolean
  /** Cause of a failed operation; undefined: timeout. */
  troubleOf(error: unknown): SharedTrouble
  /** Writes to the store at intervals while degraded; success within the budget leads to `recover`. */
  probe(): Promise<void>
  /** Catches up on missed changes; on success, the store is used again. */
  recover(): Promise<void>
}

/**
 * Creates the gate. It degrades after three consecutive failures of one kind (concurrent operations count once), and
 * recovers when a probe succeeds: 0.1 s later, then up to 1 s. A failure soon after a recovery doubles the pause, up
 * to 30 s.
 */
export function createSharedGate(options: SharedGateOptions): SharedGate {
  const { log, metrics, budgetMs } = options
  const alone = metrics
    .gauge(
      'extauth_shared_credentials_alone',
      'Whether this replica uses only its local cache, without the shared credential store.',
      [],
      'max',
    )
    .with()
  const departures = metrics.counter(
    'extauth_shared_credentials_departures_total',
    'Fallbacks to the local cache by cause.',
    ['cause'],
  )
  const time = createResponsiveTime()
  const failures = { read: 0, lock: 0, write: 0 }
  let failedAt = -Infinity
  let trouble: SharedTrouble | undefined
  let isDegraded = false
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
      await options.recover()
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
      if (isBack) markRecovered()
      else probeIn(Math.min(Math.max(LONGEST_PROBE_MS, firstProbeMs), ms * 2))
    }
    probing = setTimeout(() => void look(), ms)
    probing.unref()
  }
  const markRecovered = () => {
    isDegraded = false
    trouble = undefined
    Object.assign(failures, { read: 0, lock: 0, write: 0 })
    backAt = monotonicNow()
    alone.set(0)
    log.info({}, 'shared credential store available again')
  }
  const fail = (kind: OperationKind, startedAt: MonotonicMs, cause: SharedTrouble) => {
    if (startedAt < failedAt) return
    failedAt = monotonicNow()
    failures[kind] += 1
    if (failures[kind] >= FAILURES_BEFORE_DEGRADING) degrade(cause)
  }
  const degrade = (cause: SharedTrouble) => {
    if (isDegraded || isClosed) return
    isDegraded = true
    trouble = cause
    alone.set(1)
    departures.with(cause.cause).add()
    const wasWell = monotonicNow() - backAt >= WELL_FOR_MS
    firstProbeMs = wasWell ? FIRST_PROBE_MS : Math.min(LONGEST_FIRST_PROBE_MS, 2 * firstProbeMs)
    log.warn({ ...cause }, 'shared credential store unavailable; using the local cache')
    probeIn(firstProbeMs)
  }

  return {
    get isDegraded() {
      return isDegraded
    },
    get problem() {
      return trouble?.problem
    },
    run(kind, operation, onLate) {
      return new Promise((resolve) => {
        const startedAt = monotonicNow()
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
        const checkBudget = () => {
          if (isOver || watch.spentMs < budgetMs) return
          if (!isLate) fail(kind, startedAt, options.troubleOf(undefined))
          isLate = true
          if (watch.spentMs >= 2 * budgetMs || !options.isConnected()) giveUp()
        }
        const watch = time.start(checkBudget)
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
    degrade,
    close() {
      isClosed = true
      clearTimeout(probing)
    },
  }
}
