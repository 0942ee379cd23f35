import type { Clock, Log, Metrics, Secrets } from '../core/index.ts'
import type { Store } from '../storage/index.ts'
import type { EphemeralKeys } from '../signing/index.ts'
import type { UpstreamDeps } from '../upstreams/index.ts'

/** Everything that an authorization server needs from outside. */
export interface AuthServerDeps {
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
  readonly secrets: Secrets
  /** Makes the client for one service; `createOutbound` of net with what only the composition knows. */
  readonly outbound: UpstreamDeps['outbound']
  readonly tokenFile: UpstreamDeps['tokenFile']
  /** The state of this server and of no other. */
  readonly store: Store
  /** What stands in for keys that are not configured. */
  readonly ephemeral: EphemeralKeys
}
