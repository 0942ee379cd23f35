import type { Log, Metrics } from '../core/index.ts'

/** So many operations in a row that failed or took too long: nobody waits for the store any more. */
const FAILURES_BEFORE_ALONE = 3
const FIRST_PROBE_MS = 100
const LONGEST_PROBE_MS = 1_000

export type Gated<T> = { readonly isDone: true; readonly value: T } | { readonly isDone: false }

/** Stands between requests and the store: a slow or missing store costs a request so much and no more. */
export interface SharedGate {
  /** True while nobody asks the store because it doesn't answer. */
  readonly isAlone: boolean
  /** What `operation` gives within the budget. What comes later is handed to `onLate`. Never rejects. */
  run<T>(operation: () => Promise<T>, onLate?: (value: T) => void): Promise<Gated<T>>
  /** What must be known before the store may be used can't be learnt: goes alone at once. */
  goAlone(): void
  close(): void
}

export interface SharedGateOptions {
  readonly log: Log
  readonly metrics: Metrics
  /** For one operation, in milliseconds. */
  readonly budgetMs: number
  /** Asked now and then while alone; when it succeeds, the store is used again. */
  probe(): Promise<void>
}

/** Goes alone after three failures in a row, and comes back when `probe` succeeds (0.1 s later, then up to 1 s). */
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
  let failures = 0
  let isAlone = false
  let probing: ReturnType<typeof setTimeout> | undefined
  alone.set(0)

  const probeIn = (ms: number) => {
    probing = setTimeout(() => {
      options.probe().then(comeBack, () => {
        if (probing !== undefined) probeIn(Math.min(LONGEST_PROBE_MS, ms * 2))
      })
    }, ms)
    probing.unref()
  }
  const comeBack = () => {
    if (probing === undefined) return
    probing = undefined
    isAlone = false
    failures = 0
    alone.set(0)
    log.info({}, 'credentials are shared with the other replicas again')
  }
  const fail = () => {
    failures += 1
    if (failures >= FAILURES_BEFORE_ALONE) goAlone()
  }
  const goAlone = () => {
    if (isAlone) return
    isAlone = true
    alone.set(1)
    log.warn({}, 'the store of shared credentials does not answer in time: this replica goes on alone')
    probeIn(FIRST_PROBE_MS)
  }

  return {
    get isAlone() {
      return isAlone
    },
    run(operation, onLate) {
      return new Promise((resolve) => {
        let isOver = false
        const giveUp = () => {
          isOver = true
          fail()
          resolve({ isDone: false })
        }
        // An answer that lies in the socket already is not late: what was received is read before `setImmediate` runs.
        const timer = setTimeout(() => setImmediate(() => isOver || giveUp()), budgetMs)
        const attempt = async () => {
          try {
            const value = await operation()
            if (isOver) return onLate?.(value)
            isOver = true
            failures = 0
            resolve({ isDone: true, value })
          } catch {
            if (!isOver) giveUp()
          } finally {
            clearTimeout(timer)
          }
        }
        void attempt()
      })
    },
    goAlone,
    close() {
      clearTimeout(probing)
      probing = undefined
    },
  }
}
