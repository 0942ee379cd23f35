import type { RequestSelector } from '../cel/index.ts'
import type { RouteTarget } from '../core/index.ts'
import type { AuthSection } from './auth-section.ts'
import type { AuthSpecs, RunnableType } from './auth-types.ts'
import type { Connections } from './connections.ts'
import type { EmbeddedAuthServer } from './embedded-auth-server.ts'
import type { Storage } from './embedded-storage.ts'
import type { ProxyRoute } from './proxy-config.ts'
import type { SecretRef } from '../fields/index.ts'

/** Where a document was read. */
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
  /** The token of an upstream provider that is used for callers who logged in at the authorization server of the route. */
  readonly upstream?: UpstreamUse | undefined
}

/** The upstream provider whose token a route uses (authserver.md §2.5). */
export interface UpstreamUse {
  readonly provider: string
  readonly kind: 'access_token' | 'id_token'
  /** Issuer of the callers with such a token; undefined without an authorization server. */
  readonly issuer: string | undefined
  /** The config names the provider: callers from elsewhere get `no_session`. Otherwise their own token is used. */
  readonly isExplicit: boolean
  /** The token is that of an account that the caller connected, not of a login. */
  readonly isConnection?: true
}

/** An embedded authorization server that routes use. */
export interface ResolvedAuthServer {
  /** `namespace/name` of its document; what it stores is kept apart by it. */
  readonly name: string
  readonly namespace: string
  readonly spec: EmbeddedAuthServer
  readonly configHash: string
  readonly source: SourcePlace
}

/** The authorization server that the callers of a route log in to. */
export interface RouteAuthServer {
  /** The same object for all routes that use it. */
  readonly server: ResolvedAuthServer
  /** The upstream providers that a login for this route visits, in their order: the first, and those whose tokens it uses. */
  readonly providers: readonly string[]
}

/** Credentials that replicas share. */
export interface ResolvedCache {
  /** Name of the ProxyConfig in its namespace; what is kept is kept apart by it. */
  readonly name: string
  readonly storage: Storage
  readonly keySecretRefs: readonly SecretRef[]
}

/** The connections of a process. */
export interface ResolvedConnections {
  /** `namespace/name` of the ProxyConfig; what is stored is kept apart by it. */
  readonly name: string
  readonly namespace: string
  readonly spec: Connections
}

/** Where the traces of a route go. */
export interface ResolvedTelemetry {
  /** `namespace/name` of the MCPTelemetryConfig, or of the workload that says it itself. */
  readonly name: string
  /** Where spans are posted. */
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly secretHeaders: readonly { readonly name: string; readonly ref: SecretRef }[]
  /** Absolute; undefined: the roots of the system. */
  readonly caCertPath: string | undefined
  /** Share of the traces that begin here, 0 to 1. */
  readonly samplingRate: number
  /** Attributes of the resource, `service.name` among them. */
  readonly attributes: Readonly<Record<string, string>>
}

export type ResolvedAuth = { [T in RunnableType]: ResolvedAuthOf<T> }[RunnableType]

/** What of a route stays as its schema gives it. */
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
  /** Exactly the target's path is sent, whatever follows the prefix (manifests and short form whose target has a path). */
  readonly exactTarget: boolean
  readonly target: RouteTarget
  readonly auth: ResolvedAuth
  /** The first that matches a request replaces `auth`. */
  readonly credentials: readonly ResolvedCredential[]
  /** Who may call. Mode `oauth` without providers where only the route's authorization server lets callers in. */
  readonly callers: AuthSection
  /** Where callers log in, beside the providers of `callers`; in process (authserver.md §2.6). */
  readonly authServer: RouteAuthServer | undefined
  /** Where its traces go; undefined where its document does not say. */
  readonly telemetry: ResolvedTelemetry | undefined
  /** Undefined only on a loopback or Unix-socket bind, and on routes for anonymous callers. */
  readonly resourceUrl: string | undefined
}

/** The configs whose credentials requests of a route may get, its own first. */
export const authsOf = ({
  auth,
  credentials,
}: Pick<ResolvedRoute, 'auth' | 'credentials'>): readonly ResolvedAuth[] => [
  auth,
  ...credentials.map((entry) => entry.auth),
]
