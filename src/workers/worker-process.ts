import type { Peer } from './peer.ts'
import type { StartFailure, WorkerMethods } from './messages.ts'
/** How a process ended. */
export interface WorkerEnd {
  readonly code: number | null
  readonly signal: string | null
}

/** A process that was started as a worker. */
export interface WorkerProcess {
  readonly pid: number | undefined
  readonly peer: Peer<WorkerMethods>
  /** How its start came out: what failed, or undefined. */
  readonly started: Promise<StartFailure | undefined>
  /** Resolves when the process has ended, however it did. */
  readonly ended: Promise<WorkerEnd>
  kill(): void
}
