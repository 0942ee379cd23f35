import type { Clock } from '../core/index.ts'
import type { createResponsePolicy, PathMapping } from '../http/index.ts'
import type { Timeouts } from '../net/index.ts'

/** What of a route concerns the way back from its backend. */
export interface ForwardOptions extends PathMapping {
  readonly target: PathMapping['target'] & {
    /** `https://host[:port]`. */
    readonly origin: string
  }
  /** Interval of SSE keep-alive comments in milliseconds; 0 = none. */
  readonly sseKeepAlive: number
}

/** What every request of one route shares, worked out at load. */
export interface ForwardRoute extends ForwardOptions {
  readonly timeouts: Timeouts
  /** The egress proxy that answers some requests itself; undefined: none does. */
  readonly forwarder: URL | undefined
  readonly responsePolicy: ReturnType<typeof createResponsePolicy>
  readonly clock: Clock
}
