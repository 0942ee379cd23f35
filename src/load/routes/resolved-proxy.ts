import type { ConfigPlaces } from '../documents/config-places.ts'
import type { InspectorMode, ResolvedAuthServer, ResolvedCache, ResolvedRoute } from '../../resources/index.ts'
import type { SecretRef, Bytes } from '../../fields/index.ts'

/** What one proxy process runs. */
export interface ResolvedProxy {
  readonly namespace: string
  /** What the operator calls this configuration; undefined: it was not written by one. */
  readonly revision?: string | undefined
  readonly listen: {
    readonly address: string
    readonly tls: { readonly certFile: string; readonly keyFile: string } | undefined
    readonly allowedOrigins: readonly string[]
    readonly allowedHosts: readonly string[]
    readonly headerLimitBytes: Bytes
    readonly connectionLimit: number
    /** Undefined: as much as the memory limit of the process lets it. */
    readonly bufferedBodiesBytes: Bytes | undefined
    /** Ranges of addresses in CIDR notation. */
    readonly trustedProxies: readonly string[]
  }
  readonly admin: {
    readonly address: string
    readonly tokenFile: string | undefined
    readonly inspector: InspectorMode
  }
  readonly secretsDirectory: string
  readonly sessionKeySecretRef: SecretRef | undefined
  readonly routes: readonly ResolvedRoute[]
  /** The embedded authorization servers that routes use, each once. */
  readonly authServers: readonly ResolvedAuthServer[]
  readonly cache: ResolvedCache | undefined
  /** Fetched credentials that are kept (`limits.cachedCredentials`). Undefined: as many as the memory limit of the process lets it. */
  readonly maxCredentials: number | undefined
  /** What is allowed but should be known; a sentence each. */
  readonly warnings: readonly string[]
  /** Where its parts are written, and the files that it needs. */
  readonly places: ConfigPlaces
}
