import type { Clock, Log, Metrics, Outbound } from '../core/index.ts'
import type { WatchedFile, WatchedFileOptions } from '../files/index.ts'
import type { OutboundOptions } from '../net/index.ts'
import type { ClientDeps } from '../oauth/index.ts'

/** Outbound options of a provider; the composition adds clock, metrics and egress. */
export type ProviderOutboundOptions = Omit<OutboundOptions, 'clock' | 'metrics' | 'random' | 'resolver' | 'egressProxy'>

/** Dependencies of an authenticator. */
export interface AuthenticateDeps {
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
  /** Creates the HTTP client of one provider (`createOutbound` of net, bound by the composition). */
  readonly outbound: (options: ProviderOutboundOptions) => Outbound
  /** Client credentials; undefined where only files are available. */
  readonly client?: Omit<ClientDeps, 'clock'> | undefined
  /** Approximate memory limit of cached callers per section, in bytes. Default 64 MiB. */
  readonly rememberedBytes?: number | undefined
  /** Default: `openWatchedFile` of files. */
  readonly openFile?: (path: string, options: WatchedFileOptions) => WatchedFile
}
