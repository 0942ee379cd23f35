import {
  type AuthorizationServer,
  type BearerChallenge,
  findAuthorizationServer,
  findProtectedResource,
  type ProtectedResource,
  readChallenge,
} from '../oauth/index.ts'
import { createConnections } from './connection.ts'
import type { UpstreamDeps } from './deps.ts'
import { challengeOf, createMcpUpstream, discoveryContext, type McpUpstreamOptions } from './mcp.ts'
import { invalidRedirect, sendInvalidCode, statusOf, type UpstreamProbe } from './probe.ts'

/** Tests each step of the discovery from an MCP server separately. Throws as `createMcpUpstream`. Registers nothing. */
export interface McpProbe {
  /** The challenge of a request without credentials; undefined: none was sent. */
  challenge(): Promise<BearerChallenge | undefined>
  resource(asked: BearerChallenge | undefined): Promise<ProtectedResource>
  server(issuer: string): Promise<AuthorizationServer>
  /** Tests the configured client at the login page. */
  authorize(): ReturnType<UpstreamProbe['authorize']>
  /** Tests the configured client at the token endpoint. */
  client(server: AuthorizationServer): ReturnType<UpstreamProbe['client']>
  close(): Promise<void>
}

/** Uses the upstream's own connections; `redirectUri` is its callback. */
export function probeMcp(options: McpUpstreamOptions, redirectUri: string, deps: UpstreamDeps): McpProbe {
  const { provider, endpoint } = options
  const connections = createConnections(provider, [endpoint], deps)
  const context = discoveryContext(provider.name, connections, deps)
  const upstream = createMcpUpstream(options, deps)
  const redirect = invalidRedirect(redirectUri)
  return {
    async challenge() {
      const challenge = await challengeOf(endpoint, connections)
      return challenge === undefined ? undefined : readChallenge(challenge)
    },
    resource: (asked = readChallenge(undefined)) => findProtectedResource(new URL(endpoint), asked, context),
    server: (issuer) => findAuthorizationServer(issuer, context),
    async authorize() {
      const url = await upstream.authorizationUrl(redirect)
      return { url, status: await statusOf(connections, url.href) }
    },
    client: ({ issuer }) => sendInvalidCode(upstream, redirect, issuer),
    close: async () => {
      await Promise.all([upstream.close(), connections.close()])
    },
  }
}
