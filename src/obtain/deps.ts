import type { CredentialCache } from '../cache/index.ts'
import type {
  Clock,
  ConnectedAccounts,
  Credential,
  Log,
  Metrics,
  Outbound,
  SecretHandle,
  Secrets,
  UpstreamTokens,
} from '../core/index.ts'
import type { OutboundOptions } from '../net/index.ts'
import type { RouteDecisions } from './cloud-sts/decision-log.ts'
import type { StsSettings } from './cloud-sts/endpoint.ts'
import type { Identities } from './cloud-sts/identity/pool.ts'

/** Outbound options of a source; the composition adds clock, metrics and egress. */
export type SourceOutboundOptions = Omit<
  OutboundOptions,
  'clock' | 'metrics' | 'random' | 'resolver' | 'egressProxy' | 'protections'
>

/** Dependencies of the sources. */
export interface ObtainDeps {
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
  /** 0 ≤ n < 1. */
  readonly random: () => number
  readonly secrets: Secrets
  readonly cache: CredentialCache<Credential>
  readonly outbound: (options: SourceOutboundOptions) => Outbound
  /** The current content of a configured CA file (PEM), kept current; undefined while unreadable. */
  readonly caCertificate: (path: string) => () => Buffer | undefined
  /** The token in a configured file, kept current; undefined: the file that the environment names. */
  readonly tokenFile: (path: string | undefined) => SecretHandle
  /** STS endpoint settings of the process. */
  readonly sts?: StsSettings
  /** The environment for process identities; the SDK itself reads `process.env`. */
  readonly env: Readonly<Record<string, string | undefined>>
  /** Process identities, held while this configuration uses them. */
  readonly identities: Identities
  /** Effect of a role matcher error on this route: no match (default), or 403. */
  readonly onMatcherError?: 'skip' | 'deny'
  /** Records this route's role decisions for the admin listener. */
  readonly decisions?: RouteDecisions
  /** Absent without an embedded authorization server. */
  readonly upstreamTokens?: UpstreamTokens
  /** Absent without `connections` in the ProxyConfig. */
  readonly connections?: ConnectedAccounts
}
