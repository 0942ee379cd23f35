import type { AuthSection } from '../resources/index.ts'

/** The document of RFC 9728 §2; empty arrays are omitted (§3.2). */
export interface ProtectedResourceMetadata {
  readonly resource: string
  readonly authorization_servers?: readonly string[]
  readonly scopes_supported?: readonly string[]
  readonly bearer_methods_supported: readonly string[]
  readonly resource_documentation?: string
}

export interface ResourceMetadataOptions {
  /** The resource's URL, as configured. */
  readonly resourceUrl: string
  readonly auth: AuthSection
  /** In-process issuers, listed first (authserver.md §2.6). Default none. */
  readonly ownIssuers?: readonly string[]
  /** Default: `resourceDocumentation` of the `auth` section, else none. */
  readonly resourceDocumentation?: string | undefined
}

/**
 * The protected resource metadata (specification, discovery response fields). Providers that share an issuer are named
 * once; in mode `anonymous` there are no authorization servers (decisions §2.7).
 */
export function protectedResourceMetadata(options: ResourceMetadataOptions): ProtectedResourceMetadata {
  const { resourceUrl, auth, ownIssuers = [] } = options
  const oauth = auth.mode === 'oauth' ? auth.oauth : undefined
  const issuers = [...new Set([...ownIssuers, ...(oauth?.providers ?? []).map((provider) => provider.issuerUrl)])]
  const scopes = oauth?.scopesSupported ?? []
  const documentation = options.resourceDocumentation ?? oauth?.resourceDocumentation
  return {
    resource: resourceUrl,
    ...(issuers.length === 0 ? {} : { authorization_servers: issuers }),
    ...(scopes.length === 0 ? {} : { scopes_supported: scopes }),
    bearer_methods_supported: ['header'],
    ...(documentation === undefined ? {} : { resource_documentation: documentation }),
  }
}
