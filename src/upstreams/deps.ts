import type { Clock, Log, Outbound, Secrets } from '../core/index.ts'
import type { OutboundOptions } from '../net/index.ts'
import type { ClientDeps } from '../oauth/index.ts'

/** Outbound options of an upstream; the composition adds clock, metrics and egress. */
export type UpstreamOutboundOptions = Omit<
  OutboundOptions,
  'clock' | 'metrics' | 'random' | 'resolver' | 'egressProxy' | 'protections'
>

/** Stores registrations at upstreams, for all replicas. Methods throw `store_unavailable`. */
export interface UpstreamRegistrations {
  /**
   * The usable stored value of `id` (JSON, not secret); else the result of `make`, called by one replica at a time.
   * Throws the errors of `make`, and `overloaded` while another replica takes too long.
   */
  obtain(id: unknown, isUsable: (value: Buffer) => boolean, make: () => Promise<Buffer>): Promise<Buffer>
  /** Deletes `value`, unless it was replaced meanwhile. */
  forget(id: unknown, value: Buffer): Promise<void>
}

/** Dependencies of client registration. */
export interface RegistrationDeps {
  readonly kept: UpstreamRegistrations
  /** Redirect URIs of the upstream with this name. */
  redirectUris(upstream: string): readonly string[]
}

/** Dependencies of the upstreams. */
export interface UpstreamDeps {
  readonly clock: Clock
  readonly log: Log
  readonly secrets: Secrets
  readonly tokenFile: ClientDeps['tokenFile']
  readonly outbound: (options: UpstreamOutboundOptions) => Outbound
  /** Absent: no registration, as for probes. */
  readonly registration?: RegistrationDeps
}
