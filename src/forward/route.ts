import type { Clock } from '../core/index.ts'
import type { createResponsePolicy, PathMapping } from '../http/index.ts'
import type { Timeouts } from '../net/index.ts'

/** Settings of a route for responses of its backend. */
export interface ForwardOptions extends PathMapping {
  readonly target: PathMapping['target'] & {
    /** `https://host[:port]`. */
    readonly origin: string
  }
  /** Interval of SSE keep-alive comments in milliseconds; 0 = none. */
  readonly sseKeepAlive: number
}

/** State shared by all requests of a route, computed at load. */
export interface ForwardRoute extends ForwardOptions {
  readonly timeouts: Timeouts
  /** The egress proxy that may respond itself; undefined if none. */
  readonly forwarder: URL | undefined
  readonly responsePolicy: ReturnType<typeof createResponsePolicy>
  readonly clock: Clock
}
