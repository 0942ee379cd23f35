import type { CredentialCache } from '../cache/index.ts'
import type { Clock, Credential, Log, Metrics, Outbound, SecretHandle, Secrets, UpstreamTokens } from '../core/index.ts'
import type { OutboundOptions } from '../net/index.ts'
import type { RouteDecisions } from './cloud-sts/decision-log.ts'
import type { StsSettings } from './cloud-sts/endpoint.ts'
import type { Identities } from './cloud-sts/identity/pool.ts'

/** What a source says about the service it calls; the rest (clock, metrics, way out) is the composition's. */
export type SourceOutboundOptions = Omit<
  OutboundOptions,
  'clock' | 'metrics' | 'random' | 'resolver' | 'egressProxy' | 'protections'
>

/** Everything that the sources need from outside. */
export interface ObtainDeps {
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
  /** 0 ≤ n < 1. */
  readonly random: () => number
  readonly secrets: Secrets
  readonly cache: CredentialCache<Credential>
  readonly outbound: (options: SourceOutboundOptions) => Outbound
  /** The current content of a CA file (PEM) that a config names, kept current; undefined while it can't be read. */
  readonly caCertificate: (path: string) => () => Buffer | undefined
  /** The token in a file that a config names, kept current; undefined: the file that the environment names. */
  readonly tokenFile: (path: string | undefined) => SecretHandle
  /** Where STS is, when not where the region says: before a config's own `stsEndpoint`, and after it. */
  readonly sts?: StsSettings
  /** The environment that AWS identities of the process are looked for in; that of the SDK is `process.env`. */
  readonly env: Readonly<Record<string, string | undefined>>
  /** Those identities, as long as this configuration uses them. */
  readonly identities: Identities
  /** What a role matcher that can't be evaluated means on this route: no match (default), or 403. */
  readonly onMatcherError?: 'skip' | 'deny'
  /** Where the role decisions of this route are kept for the admin listener. */
  readonly decisions?: RouteDecisions
  /** Absent until there is an embedded authorization server. */
  readonly upstreamTokens?: UpstreamTokens
}
