import { AsyncLocalStorage } from 'node:async_hooks'
import type { EpochMs } from '../../src/core/index.ts'

/** A request exactly as it reached the backend. */
export interface RecordedRequest {
  /** Counts from 1 in order of arrival. */
  readonly number: number
  readonly receivedAtMs: EpochMs
  readonly method: string
  /** Path and query as on the request line. */
  readonly target: string
  /** Flat header list (name, value, …) in the order and case of the wire. */
  readonly headers: readonly string[]
  readonly body: Buffer
  /** Where it came in: the path of the mount. */
  readonly mount: string
  /** Facts that the verifier established about the sender; undefined if nothing is required. */
  readonly verified: Readonly<Record<string, unknown>> | undefined
  /** Status that was answered; 0 until the answer begins. */
  status: number
  /** True when the connection went away before the answer was complete. */
  aborted: boolean
}

/** How a call of the tool `wait` ended, so that a test can see a cancellation arrive. */
export interface WaitOutcome {
  readonly label: string
  outcome: 'waiting' | 'finished' | 'cancelled'
}

/** State shared by the MCP servers of a backend, which are created for each session or request. */
export interface LabState {
  /** The HTTP request that the running tool call came with. */
  readonly current: AsyncLocalStorage<RecordedRequest>
  readonly waits: WaitOutcome[]
  /** Notes by id, which the tools read, write and delete. */
  readonly notes: Map<string, string>
  /** Goes up with each `test_trigger_tool_change`; shown in a tool's description, so that the list really changes. */
  toolsRevision: number
  promptsRevision: number
  /** Notifies every open session and subscription of a changed list. */
  announce: (what: 'tools' | 'prompts') => void
}

/** An empty state; the server sets `announce`. */
export function createLabState(): LabState {
  return {
    current: new AsyncLocalStorage(),
    waits: [],
    notes: new Map([['welcome', 'Rules decide which tools a caller sees.']]),
    toolsRevision: 0,
    promptsRevision: 0,
    announce: () => undefined,
  }
}
