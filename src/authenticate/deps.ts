import type { Clock, Log, Metrics, Outbound } from '../core/index.ts'
import type { WatchedFile, WatchedFileOptions } from '../files/index.ts'
import type { OutboundOptions } from '../net/index.ts'
import type { ClientDeps } from '../oauth/index.ts'

/** What this room says about a connection; the rest (clock, metrics, way out) is the composition's. */
export type ProviderOutboundOptions = Omit<OutboundOptions, 'clock' | 'metrics' | 'random' | 'resolver' | 'egressProxy'>

/** Everything that an authenticator needs from outside. */
export interface AuthenticateDeps {
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
  /** Makes the client for one provider; `createOutbound` of net with what only the composition knows. */
  readonly outbound: (options: ProviderOutboundOptions) => Outbound
  /** What clients authenticate with; undefined where there are files alone. */
  readonly client?: Omit<ClientDeps, 'clock'> | undefined
  /** About how many bytes of verified callers one section remembers. Default 64 MiB. */
  readonly rememberedBytes?: number | undefined
  /** Default: `openWatchedFile` of files. */
  readonly openFile?: (path: string, options: WatchedFileOptions) => WatchedFile
}
