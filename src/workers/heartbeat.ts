import type { WorkerProcess } from './worker-process.ts'

/** Heartbeat interval in milliseconds. */
const BEAT_MS = 1_000
/** Consecutive missed heartbeats of a hung worker. */
const HUNG_AFTER = 12
/** A starting worker responds only after loading, which takes longer on a busy machine. */
const HUNG_AT_START_AFTER = 60

export interface HeartbeatOptions {
  /** The workers at each heartbeat. */
  readonly workers: () => Iterable<WorkerProcess>
  readonly hasStarted: (worker: WorkerProcess) => boolean
  /** Called once per hung worker. */
  readonly onHung: (worker: WorkerProcess, unansweredSeconds: number) => void
}

/**
 * Detects hung workers. Counts heartbeats and not time, so a suspended machine or a stopped supervisor costs at most
 * one.
 */
export function watchHeartbeats({ workers, hasStarted, onHung }: HeartbeatOptions): { close(): void } {
  const unanswered = new WeakMap<WorkerProcess, number>()
  const beat = (worker: WorkerProcess): void => {
    const count = unanswered.get(worker) ?? 0
    unanswered.set(worker, count + 1)
    const most = hasStarted(worker) ? HUNG_AFTER : HUNG_AT_START_AFTER
    if (count === most) return onHung(worker, (most * BEAT_MS) / 1_000)
    if (count > most) return
    worker.peer.ask('beat', [], most * BEAT_MS).then(
      () => unanswered.set(worker, 0),
      // Either it has exited, which is reported, or it is late, which counts.
      () => undefined,
    )
  }
  const timer = setInterval(() => {
    for (const worker of workers()) beat(worker)
  }, BEAT_MS)
  return { close: () => clearInterval(timer) }
}
