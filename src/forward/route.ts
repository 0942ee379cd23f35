import type { Clock } from '../core/index.ts'
import type { createResponsePolicy, PathMapping } from '../http/index.ts'

/** What every request of one route shares, worked out at load. */
export interface ForwardRoute extends PathMapping {
  /** `https://host[:port]`. */
  readonly targetOrigin: string
  /** Interval of SSE keep-alive comments in milliseconds; 0 = none. */
  readonly sseKeepAliveMs: number
  readonly responsePolicy: ReturnType<typeof createResponsePolicy>
  readonly clock: Clock
}
