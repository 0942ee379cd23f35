import type { CacheListing, PurgeFilter } from '../cache/index.ts'
import type { ConnectionFilter, ConnectionList, ListFilter } from '../connections/index.ts'
import type { Readiness } from '../ops/index.ts'
import type { Purged, ReloadResult } from '../compose/index.ts'
import type { MetricsSnapshot, NamesInUse } from '../report/index.ts'
import type { FixedSettings } from '../compose/proxy/index.ts'
import type { StoreMethods } from './memory-of-workers.ts'

/** The error of a failed start, as the command prints it. */
export interface StartFailure {
  /** Lines of a `ConfigError`. */
  readonly lines?: readonly string[]
  /** Code of another failure. */
  readonly code?: string
  readonly detail?: string | undefined
  /** System code, such as EADDRINUSE. */
  readonly systemCode?: string | undefined
}

/** Shared by all workers. Secrets are in clear, only between processes of one proxy. */
export interface CommonMaterial {
  /** URL of the supervisor's listener. */
  readonly url: string
  readonly sessionKey: string
  readonly ticketKeys: Buffer
  readonly settings: FixedSettings
  /** Standard input of the supervisor, for the path `-`. */
  readonly stdin: string | undefined
}

/** Requests from the supervisor to a worker. */
export type WorkerMethods = {
  config(): object
  readiness(): Readiness
  metrics(): Promise<{ readonly snapshot: MetricsSnapshot; readonly names: NamesInUse }>
  cache(): CacheListing
  purge(filter: PurgeFilter): Promise<Purged>
  disconnect(filter: ConnectionFilter): Promise<number>
  connections(filter: ListFilter): Promise<ConnectionList>
  decisions(): readonly object[]
  reload(): Promise<ReloadResult>
  /** A message for a subscription of this worker. */
  published(id: number, message: string): void
  /** Heartbeat; only the response matters. */
  beat(): void
  /** Drains and exits. */
  stop(): void
}

/** Requests from a worker to its supervisor. */
export type SupervisorMethods = StoreMethods & {
  common(): CommonMaterial
  /** Generated keys of an authorization server without configured ones, shared by all workers. */
  ephemeralKeys(server: string): { readonly signing: string; readonly sealing: string }
  ready(): void
  failed(failure: StartFailure): void
}
