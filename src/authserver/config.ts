import type { EmbeddedAuthServer } from '../resources/index.ts'

/** A resource: one route, or several with one `resourceUrl`, that use this server. */
export interface AuthServerResource {
  /** `resourceUrl` as configured: the `aud` of tokens for it. */
  readonly url: string
  /** Scopes that clients may request there. */
  readonly scopes: readonly string[]
  /** Upstream providers whose tokens its routes use, in addition to the first one. */
  readonly providers: readonly string[]
}

/** An embedded authorization server and its routes. */
export interface AuthServerConfig {
  /** `namespace/name` of its document; also the namespace of its stored state. */
  readonly name: string
  readonly spec: EmbeddedAuthServer
  readonly resources: readonly AuthServerResource[]
  /** Browsers remember who logged in, for pages that ask for it (`PersonLogins`). Default: false. */
  readonly remembersPersons?: boolean
}
