import type { WorkerEnd, WorkerProcess } from './worker-process.ts'
import { type Log, type Metrics, type MonotonicMs, monotonicNow } from '../core/index.ts'
import type { StartFailure } from './messages.ts'
import { NoAnswer } from './peer.ts'
import { watchHeartbeats } from './heartbeat.ts'

export interface PoolOptions {
  readonly count: number
  readonly fork: () => WorkerProcess
  readonly log: Log
  readonly metrics: Metrics
  /** A started worker has exited; its figures are final. */
  readonly onEnded: (worker: WorkerProcess) => void
}

/** The worker pool of a proxy, kept at its size. */
export interface WorkerPool {
  /** Workers that serve requests. */
  readonly serving: readonly WorkerProcess[]
  /** Drains all workers and kills those left after `withinMs`. */
  stop(withinMs: number): Promise<void>
}

/** A worker failed to start, with its reason. */
export class WorkerNotStarted extends Error {
  readonly failure: StartFailure
  constructor(failure: StartFailure) {
    super('worker failed to start')
    this.name = 'WorkerNotStarted'
    this.failure = failure
  }
}

/** A worker with a shorter life is replaced after a pause, which doubles each time. */
const SHORT_LIFE_MS = 10_000
const FIRST_PAUSE_MS = 100
const LONGEST_PAUSE_MS = 10_000

/**
 * Starts the first worker, then the others; replaces workers that exit or hang. Throws `WorkerNotStarted` if one of
 * the first fails to start, after stopping all.
 */
export async function startPool({ count, fork, log, metrics, onEnded }: PoolOptions): Promise<WorkerPool> {
  const running = metrics.gauge('extauth_workers', 'Worker processes that serve.').with()
  const ends = metrics.counter('extauth_worker_ends_total', 'Worker processes that crashed or hung.', ['reason'])
  const ended = { crashed: ends.with('crashed'), hung: ends.with('hung') }
  running.set(0)
  const all = new Set<WorkerProcess>()
  const serving = new Set<WorkerProcess>()
  const hung = new WeakSet<WorkerProcess>()
  let shortLives = 0
  let isStopping = false
  let pause: NodeJS.Timeout | undefined

  const lost = (worker: WorkerProcess, { code, signal }: WorkerEnd, livedMs: number): void => {
    running.set(serving.size)
    onEnded(worker)
    if (isStopping) return
    const reason = hung.has(worker) ? 'hung' : 'crashed'
    ended[reason].add()
    const how = reason === 'hung' ? 'hung worker killed' : 'worker exited unexpectedly'
    log.error({ worker: worker.pid, code, signal }, `${how}, starting a replacement`)
    shortLives = livedMs < SHORT_LIFE_MS ? shortLives + 1 : 0
    replace()
  }

  const follow = async (worker: WorkerProcess, startedAt: MonotonicMs): Promise<void> => {
    const end = await worker.ended
    all.delete(worker)
    if (serving.delete(worker)) lost(worker, end, monotonicNow() - startedAt)
  }

  const start = async (): Promise<void> => {
    const worker = fork()
    const startedAt = monotonicNow()
    all.add(worker)
    void follow(worker, startedAt)
    const failure = await worker.started
    if (failure !== undefined) throw new WorkerNotStarted(failure)
    serving.add(worker)
    running.set(serving.size)
  }

  const replace = (): void => {
    if (isStopping) return
    const pauseMs = shortLives === 0 ? 0 : Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (shortLives - 1))
    pause = setTimeout(() => {
      start().catch((error: unknown) => {
        if (isStopping) return
        const problems = error instanceof WorkerNotStarted ? (error.failure.lines ?? error.failure) : undefined
        log.error({ problems }, 'replacement worker failed to start, retrying')
        shortLives += 1
        replace()
      })
    }, pauseMs)
  }

  const heartbeats = watchHeartbeats({
    workers: () => all,
    hasStarted: (worker) => serving.has(worker),
    onHung(worker, unansweredSeconds) {
      hung.add(worker)
      log.error({ worker: worker.pid, unansweredSeconds }, 'worker is unresponsive, killing it')
      worker.kill()
    },
  })

  const stop = async (withinMs: number): Promise<void> => {
    isStopping = true
    clearTimeout(pause)
    const workers = [...all]
    const timer = setTimeout(() => {
      for (const worker of all) worker.kill()
    }, withinMs)
    for (const worker of workers)
      worker.peer.ask('stop', []).catch((error: unknown) => {
        // A busy worker is killed after the limit. A starting worker has nothing to drain.
        if (!(error instanceof NoAnswer)) worker.kill()
      })
    await Promise.all(workers.map((worker) => worker.ended))
    clearTimeout(timer)
    heartbeats.close()
  }

  try {
    await start()
    await Promise.all(Array.from({ length: count - 1 }, start))
    return {
      get serving() {
        return [...serving]
      },
      stop,
    }
  } catch (error) {
    await stop(0)
    throw error
  }
}
