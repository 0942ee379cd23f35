import { Failure, type LocalHandler } from '../core/index.ts'
import type { ConnectionProvider } from '../resources/index.ts'
import type { McpUpstreamOptions } from '../upstreams/index.ts'

/** Client ID metadata documents of this proxy (MCP authorization), for providers of type `mcp`. */
export interface ClientDocuments {
  /** URL of the document for a provider; undefined where other servers can't fetch it: `baseUrl` is not https. */
  urlOf(provider: string): string | undefined
  readonly handler: LocalHandler
}

/** The documents are the same for all providers but for their URL, which is the client id. */
export function createClientDocuments(baseUrl: string): ClientDocuments {
  const { origin, pathname } = new URL(baseUrl)
  const folder = `${pathname.replace(/\/$/, '')}/.well-known/oauth-client`
  const isPublic = baseUrl.startsWith('https:')
  return {
    urlOf: (provider) => (isPublic ? `${origin}${folder}/${provider}.json` : undefined),
    handler: {
      path: `${folder}/*`,
      methods: ['GET'],
      bodyLimitBytes: 0,
      cors: 'any_origin',
      handle({ path }) {
        if (!isPublic || !path.endsWith('.json'))
          throw new Failure('not_found', { detail: 'there is no such client metadata document' })
        const document = {
          client_id: `${origin}${path}`,
          client_name: 'mcp-extauth',
          client_uri: origin,
          redirect_uris: [`${baseUrl}/connect/callback`],
          grant_types: ['authorization_code', 'refresh_token'],
          response_types: ['code'],
          token_endpoint_auth_method: 'none',
          application_type: 'web',
        }
        return {
          status: 200,
          headers: { 'content-type': 'application/json', 'cache-control': 'public, max-age=300' },
          body: JSON.stringify(document),
        }
      },
    },
  }
}

/** The upstream of a provider of type `mcp` at this MCP server; undefined for other types. */
export function mcpUpstreamOf(
  provider: ConnectionProvider,
  endpoint: string,
  documents: Pick<ClientDocuments, 'urlOf'>,
): McpUpstreamOptions | undefined {
  if (provider.mcp === undefined) return undefined
  const { clientMetadata, scopes, ...client } = provider.mcp
  return {
    provider,
    endpoint,
    scopes,
    client: client.clientId === undefined && client.clientAuth === undefined ? undefined : client,
    clientMetadataUrl: clientMetadata === 'auto' ? documents.urlOf(provider.name) : undefined,
  }
}
