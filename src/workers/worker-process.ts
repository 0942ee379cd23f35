import type { Peer } from './peer.ts'
import type { StartFailure, WorkerMethods } from './messages.ts'
/** Exit of a process. */
export interface WorkerEnd {
  readonly code: number | null
  readonly signal: string | null
}

/** A worker process. */
export interface WorkerProcess {
  readonly pid: number | undefined
  readonly peer: Peer<WorkerMethods>
  /** Result of its start: the failure, or undefined. */
  readonly started: Promise<StartFailure | undefined>
  /** Resolves when the process has exited. */
  readonly ended: Promise<WorkerEnd>
  kill(): void
}
