import type { EmbeddedAuthServer } from '../resources/index.ts'

/** One resource that clients log in for: a route (or several with one `resourceUrl`) that uses this server. */
export interface AuthServerResource {
  /** `resourceUrl` as configured: the `aud` of tokens for it. */
  readonly url: string
  /** What clients may ask for there. */
  readonly scopes: readonly string[]
  /** Names of the upstream providers whose tokens its routes use, beside the first one. */
  readonly providers: readonly string[]
}

/** One embedded authorization server, and the routes that point at it. */
export interface AuthServerConfig {
  /** `namespace/name` of its document; what is stored is kept apart by it. */
  readonly name: string
  readonly spec: EmbeddedAuthServer
  readonly resources: readonly AuthServerResource[]
}
