import type { Body, EpochMs } from '../core/index.ts'

/** The request as it will be sent, still open: appliers add to it, in the order of `index.ts`, and then it is sealed. */
export interface Draft {
  readonly method: string
  /** Path and query as sent. */
  path: string
  /** `host[:port]` as sent. */
  readonly host: string
  /** Flat header list (name, value, …). */
  readonly headers: string[]
  readonly body: Body
  /** Time to sign with,, already corrected by the backend's clock. */
  readonly nowMs: EpochMs
}

/** Acts on a draft with one kind of credential. Synchronous, no I/O. */
export type Applier<C> = (draft: Draft, credential: C) => void
