import type { EmbeddedAuthServer, SecretRef } from '../resources/index.ts'
import type { Rate } from './rates.ts'

/** One resource that clients log in for: a route (or several with one `resourceUrl`) that uses this server. */
export interface AuthServerResource {
  /** `resourceUrl` as configured: the `aud` of tokens for it. */
  readonly url: string
  /** What clients may ask for there. */
  readonly scopes: readonly string[]
  /** Names of the upstream providers whose tokens its routes use, beside the first one. */
  readonly providers: readonly string[]
}

/** What may be set beside the fields of the specification. */
export interface AuthServerExtensions {
  /** What one client address may ask. */
  readonly limits?:
    | {
        readonly registration: Rate
        readonly authorize: Rate
        readonly token: Rate
        readonly registeredClients: number
      }
    | undefined
  /** How metadata documents of clients are fetched. */
  readonly clientMetadata?:
    { readonly allowPrivateIP: boolean; readonly caBundleRef?: SecretRef | undefined } | undefined
  /** More claims of the first upstream that our tokens carry. */
  readonly forwardClaims?: readonly string[] | undefined
}

/** One embedded authorization server, and the routes that point at it. */
export interface AuthServerConfig {
  /** `namespace/name` of its document; what is stored is kept apart by it. */
  readonly name: string
  readonly spec: EmbeddedAuthServer & AuthServerExtensions
  readonly resources: readonly AuthServerResource[]
}
