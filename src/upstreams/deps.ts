import type { Clock, Log, Outbound, Secrets } from '../core/index.ts'
import type { OutboundOptions } from '../net/index.ts'
import type { ClientDeps } from '../oauth/index.ts'

/** What an upstream says about the service it calls; the rest (clock, metrics, way out) is the composition's. */
export type UpstreamOutboundOptions = Omit<
  OutboundOptions,
  'clock' | 'metrics' | 'random' | 'resolver' | 'egressProxy' | 'protections'
>

/** Keeps what was registered at upstreams, for all replicas. Methods throw `store_unavailable`. */
export interface UpstreamRegistrations {
  /**
   * What is kept under `id` (JSON, nothing secret) and is usable; else what `make` gives, made by one replica at a time. Throws
   * what `make` throws, and `overloaded` while another replica takes too long.
   */
  obtain(id: unknown, isUsable: (value: Buffer) => boolean, make: () => Promise<Buffer>): Promise<Buffer>
  /** Forgets `value`, unless something else is kept by now. */
  forget(id: unknown, value: Buffer): Promise<void>
}

/** How an upstream registers itself, where it does. */
export interface RegistrationDeps {
  readonly kept: UpstreamRegistrations
  /** Where the upstream of this name may send browsers back to. */
  redirectUris(upstream: string): readonly string[]
}

/** Everything that the upstreams need from outside. */
export interface UpstreamDeps {
  readonly clock: Clock
  readonly log: Log
  readonly secrets: Secrets
  readonly tokenFile: ClientDeps['tokenFile']
  readonly outbound: (options: UpstreamOutboundOptions) => Outbound
  /** Absent: nothing is registered, as when an upstream is only looked at. */
  readonly registration?: RegistrationDeps
}
