import type { ConfigPlaces } from '../documents/config-places.ts'
import type {
  AuditSettings,
  InspectorMode,
  ResolvedAuthServer,
  ResolvedCache,
  ResolvedConnections,
  ResolvedRoute,
} from '../../resources/index.ts'
import type { SecretRef, Bytes } from '../../fields/index.ts'

/** The configuration of one proxy process. */
export interface ResolvedProxy {
  readonly namespace: string
  /** The revision that the operator assigned; undefined without an operator. */
  readonly revision?: string | undefined
  readonly listen: {
    readonly address: string
    readonly tls: { readonly certFile: string; readonly keyFile: string } | undefined
    readonly allowedOrigins: readonly string[]
    readonly allowedHosts: readonly string[]
    readonly headerLimitBytes: Bytes
    readonly connectionLimit: number
    /** Undefined: derived from the memory limit of the process. */
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
  /** The embedded authorization servers in use, each once. */
  readonly authServers: readonly ResolvedAuthServer[]
  readonly cache: ResolvedCache | undefined
  readonly connections: ResolvedConnections | undefined
  /** The audit trail; its file is absolute, or `stdout`. */
  readonly audit: AuditSettings | undefined
  /**
   * Maximum cached credentials (`limits.cachedCredentials`). Undefined: derived from the memory limit of the process.
   */
  readonly maxCredentials: number | undefined
  /** Allowed but questionable settings, one sentence each. */
  readonly warnings: readonly string[]
  /** The locations of its parts, and the files that it needs. */
  readonly places: ConfigPlaces
}
