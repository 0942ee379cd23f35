import type { CacheListing, PurgeFilter } from '../cache/index.ts'
import type { Readiness } from '../ops/index.ts'
import type { Purged, ReloadResult } from '../compose/index.ts'
import type { MetricsSnapshot, NamesInUse } from '../report/index.ts'
import type { FixedSettings } from '../compose/proxy/index.ts'
import type { StoreMethods } from './memory-of-workers.ts'

/** What a worker says of its start when it failed; as the command would have said it. */
export interface StartFailure {
  /** Of a `ConfigError`. */
  readonly lines?: readonly string[]
  /** Of another failure. */
  readonly code?: string
  readonly detail?: string | undefined
  /** The system's, such as EADDRINUSE. */
  readonly systemCode?: string | undefined
}

/** What all workers have in common; secrets in clear, between processes of one proxy only. */
export interface CommonMaterial {
  /** Where the supervisor accepts connections. */
  readonly url: string
  readonly sessionKey: string
  readonly ticketKeys: Buffer
  readonly settings: FixedSettings
  /** What the supervisor read from its standard input for the path `-`. */
  readonly stdin: string | undefined
}

/** What a supervisor asks of a worker. */
export type WorkerMethods = {
  config(): object
  readiness(): Readiness
  metrics(): Promise<{ readonly snapshot: MetricsSnapshot; readonly names: NamesInUse }>
  cache(): CacheListing
  purge(filter: PurgeFilter): Promise<Purged>
  decisions(): readonly object[]
  reload(): Promise<ReloadResult>
  /** Something was published to a subscription of this worker. */
  published(id: number, message: string): void
  /** Says nothing: that it is answered at all is what counts. */
  beat(): void
  /** Drains and ends. */
  stop(): void
}

/** What a worker asks of its supervisor. */
export type SupervisorMethods = StoreMethods & {
  common(): CommonMaterial
  /** Keys of an authorization server that has none configured: the same for every worker. */
  ephemeralKeys(server: string): { readonly signing: string; readonly sealing: string }
  ready(): void
  failed(failure: StartFailure): void
}
