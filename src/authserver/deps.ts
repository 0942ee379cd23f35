import type { AuditNotice, AuditSink, Clock, Log, Metrics, Secrets } from '../core/index.ts'
import type { Store } from '../storage/index.ts'
import type { EphemeralKeys } from '../signing/index.ts'
import type { UpstreamDeps } from '../upstreams/index.ts'

/** Dependencies of an authorization server. */
export interface AuthServerDeps {
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
  readonly audit: AuditSink
  readonly secrets: Secrets
  /** Creates the HTTP client for one service (`createOutbound` of net, bound by the composition). */
  readonly outbound: UpstreamDeps['outbound']
  readonly tokenFile: UpstreamDeps['tokenFile']
  /** The state of this server only. */
  readonly store: Store
  /** Generated keys for those that are not configured. */
  readonly ephemeral: EphemeralKeys
}

/** Records an event of this server in the audit trail. */
export type Audit = (notice: Omit<AuditNotice, 'component' | 'client'>) => void
