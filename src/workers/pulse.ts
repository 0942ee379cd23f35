import type { WorkerProcess } from './worker-process.ts'

/** How often each worker is asked whether it is there, in milliseconds. */
const BEAT_MS = 1_000
/** So many questions in a row that a worker leaves without an answer it has hung. */
const HUNG_AFTER = 12
/** One that is just starting has no answer before its program is loaded, which takes its time on a busy machine. */
const HUNG_AT_START_AFTER = 60

export interface PulseOptions {
  /** Those to ask, as they are at each beat. */
  readonly workers: () => Iterable<WorkerProcess>
  readonly hasStarted: (worker: WorkerProcess) => boolean
  /** Called once for each that has hung. */
  readonly onHung: (worker: WorkerProcess, unansweredSeconds: number) => void
}

/**
 * Notices workers that are there and do nothing. What counts are beats of this process, not the time between them: a machine
 * that sleeps or a supervisor that is stopped comes to one beat, however long it was, and costs no worker its life.
 */
export function watchPulse({ workers, hasStarted, onHung }: PulseOptions): { close(): void } {
  const unanswered = new WeakMap<WorkerProcess, number>()
  const beat = (worker: WorkerProcess): void => {
    const count = unanswered.get(worker) ?? 0
    unanswered.set(worker, count + 1)
    const most = hasStarted(worker) ? HUNG_AFTER : HUNG_AT_START_AFTER
    if (count === most) return onHung(worker, (most * BEAT_MS) / 1_000)
    if (count > most) return
    worker.peer.ask('beat', [], most * BEAT_MS).then(
      () => unanswered.set(worker, 0),
      // It has gone, which its end tells, or it is late, which counts.
      () => undefined,
    )
  }
  const timer = setInterval(() => {
    for (const worker of workers()) beat(worker)
  }, BEAT_MS)
  return { close: () => clearInterval(timer) }
}
