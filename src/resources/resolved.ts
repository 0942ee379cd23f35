import type { RequestSelector } from '../cel/index.ts'
import type { RouteTarget } from '../core/index.ts'
import type { AuthSection } from './auth-section.ts'
import type { AuthSpecs, RunnableType } from './auth-types.ts'
import type { Connections } from './connections.ts'
import type { EmbeddedAuthServer } from './embedded-auth-server.ts'
import type { Storage } from './embedded-storage.ts'
import type { ProxyRoute } from './proxy-config.ts'
import type { SecretRef } from '../fields/index.ts'

/** Location of a document. */
export interface SourcePlace {
  readonly file: string
  /** First line of the document, from 1. */
  readonly line: number
}

/** A resolved MCPExternalAuthConfig of a route, ready for `obtain`: `spec` is the sub-object that `type` names. */
export interface ResolvedAuthOf<T extends RunnableType> {
  readonly name: string
  readonly namespace: string
  readonly type: T
  readonly spec: AuthSpecs[T]
  /** First 16 hex digits of SHA-256 over the canonical JSON of the defaulted spec (decisions §6). */
  readonly configHash: string
  readonly source: SourcePlace
  /** The upstream token for callers who logged in at the route's authorization server. */
  readonly upstream?: UpstreamUse | undefined
}

/** The upstream provider whose token a route uses (authserver.md §2.5). */
export interface UpstreamUse {
  readonly provider: string
  readonly kind: 'access_token' | 'id_token'
  /** Issuer of callers with an upstream token; undefined without an authorization server. */
  readonly issuer: string | undefined
  /** The config names the provider: callers of other issuers get `no_session`. Otherwise their own token is used. */
  readonly isExplicit: boolean
  /** The token belongs to a connected account instead of a login. */
  readonly isConnection?: true
}

/** An embedded authorization server that routes use. */
export interface ResolvedAuthServer {
  /** `namespace/name` of its document; isolates its stored data. */
  readonly name: string
  readonly namespace: string
  readonly spec: EmbeddedAuthServer
  readonly configHash: string
  readonly source: SourcePlace
}

/** The authorization server for logins of a route's callers. */
export interface RouteAuthServer {
  /** The same object for all routes that use it. */
  readonly server: ResolvedAuthServer
  /** Upstream providers of a login for this route, in order: the first, and those whose tokens it uses. */
  readonly providers: readonly string[]
}

/** Credentials that replicas share. */
export interface ResolvedCache {
  /** Name of the ProxyConfig in its namespace; isolates its stored data. */
  readonly name: string
  readonly storage: Storage
  readonly keySecretRefs: readonly SecretRef[]
}

/** The connections of a process. */
export interface ResolvedConnections {
  /** `namespace/name` of the ProxyConfig; isolates its stored data. */
  readonly name: string
  readonly namespace: string
  readonly spec: Connections
}

/** The trace receiver of a route. */
export interface ResolvedTelemetry {
  /** `namespace/name` of the MCPTelemetryConfig, or of the workload with inline settings. */
  readonly name: string
  /** Endpoint for spans. */
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly secretHeaders: readonly { readonly name: string; readonly ref: SecretRef }[]
  /** Absolute path; undefined: the system's CA certificates. */
  readonly caCertPath: string | undefined
  /** Sampling ratio of traces without a parent, 0 to 1. */
  readonly samplingRate: number
  /** Resource attributes, including `service.name`. */
  readonly attributes: Readonly<Record<string, string>>
}

export type ResolvedAuth = { [T in RunnableType]: ResolvedAuthOf<T> }[RunnableType]

/** Route fields that keep their parsed form. */
type AsParsed = Omit<
  ProxyRoute,
  'target' | 'externalAuthConfigRef' | 'authServerRef' | 'auth' | 'resourceUrl' | 'credentials'
>

/** Another credential for some requests of a route. */
export interface ResolvedCredential extends RequestSelector {
  readonly when: string | undefined
  readonly auth: ResolvedAuth
}

/**
 * A route from any document: its settings under the names of their schema (`route()`), absolute file paths, and
 * resolved references.
 */
export interface ResolvedRoute extends Readonly<AsParsed> {
  /**
   * Sends exactly the target's path and ignores the rest of the request path (manifests, and the short form whose
   * target has a path).
   */
  readonly exactTarget: boolean
  readonly target: RouteTarget
  readonly auth: ResolvedAuth
  /** The first match replaces `auth` for a request. */
  readonly credentials: readonly ResolvedCredential[]
  /** The accepted callers. Mode `oauth` without providers if only the route's authorization server issues tokens. */
  readonly callers: AuthSection
  /** Embedded authorization server for logins, in addition to the providers of `callers` (authserver.md §2.6). */
  readonly authServer: RouteAuthServer | undefined
  /** Trace receiver; undefined if the document sets none. */
  readonly telemetry: ResolvedTelemetry | undefined
  /** Undefined only on a loopback or Unix-socket bind, and on routes for anonymous callers. */
  readonly resourceUrl: string | undefined
}

/** The configs of a route: its own first, then those of `credentials`. */
export const authsOf = ({
  auth,
  credentials,
}: Pick<ResolvedRoute, 'auth' | 'credentials'>): readonly ResolvedAuth[] => [
  auth,
  ...credentials.map((entry) => entry.auth),
]

/** The providers of `connections` whose credentials a route sends. */
export const connectionsOf = (route: Pick<ResolvedRoute, 'auth' | 'credentials'>): readonly string[] => [
  ...new Set(authsOf(route).flatMap(({ upstream }) => (upstream?.isConnection === true ? [upstream.provider] : []))),
]
