import type { Clock, Log, Outbound, Secrets } from '../core/index.ts'
import type { OutboundOptions } from '../net/index.ts'

/** What an upstream says about the service it calls; the rest (clock, metrics, way out) is the composition's. */
export type UpstreamOutboundOptions = Omit<
  OutboundOptions,
  'clock' | 'metrics' | 'random' | 'resolver' | 'egressProxy' | 'protections'
>

/** Everything that the upstreams need from outside. */
export interface UpstreamDeps {
  readonly clock: Clock
  readonly log: Log
  readonly secrets: Secrets
  readonly outbound: (options: UpstreamOutboundOptions) => Outbound
}
