import { randomUUID } from 'node:crypto'
import { type Clock, Failure, NO_CLAIMS } from '../core/index.ts'
import {
  type AuthorizationServer,
  type DiscoveryContext,
  discoverResource,
  readCallback,
  readChallenge,
  type ResourceAccess,
} from '../oauth/index.ts'
import type { FlatClient } from '../resources/index.ts'
import { authorizationUrl, codeForm, requestedScopes } from './authorization-url.ts'
import { type ConnectedProvider, type Connections, createConnections, unanswered } from './connection.ts'
import type { UpstreamDeps } from './deps.ts'
import { tokensWithoutId } from './oauth2.ts'
import { createRegisteredClient } from './registered-client.ts'
import { createRevocation } from './revocation.ts'
import { createTokenEndpoint } from './token-endpoint.ts'
import type { Upstream } from './upstream.ts'
import { clientWithSecret, createConfiguredClient, type UpstreamClient } from './upstream-client.ts'

/** A remote MCP server at which people connect accounts, and the proxy's client there. */
export interface McpUpstreamOptions {
  readonly provider: ConnectedProvider
  /** URL of the MCP server. */
  readonly endpoint: string
  /** Requested scopes. Default: those of the challenge, else those of the metadata. */
  readonly scopes: readonly string[]
  /** The configured client; undefined: a client metadata document or registration. */
  readonly client: FlatClient | undefined
  /** URL of the proxy's client metadata document; undefined without a reachable one. */
  readonly clientMetadataUrl: string | undefined
}

/** Discovery is repeated after this time: a server may move to a different authorization server. */
const FRESH_MS = 10 * 60_000
/** The same before a login, which may follow a rejected token. */
const LOGIN_FRESH_MS = 1000
const MOST_CLIENTS = 8
/** Metadata of remote servers (connections.md §5). */
const MOST_PAGE_BYTES = 64 * 1024

/** The destination and the proxy's client there. */
interface Found extends ResourceAccess {
  readonly client: UpstreamClient
  readonly foundAtMs: number
}

/**
 * An upstream discovered from an MCP server (connections.md §5): RFC 9728 by its challenge or well-known URLs, RFC
 * 8414, then a client by metadata document, registration or configuration. Tokens are sent only to the authorization
 * server that issued them. Throws `config_error` if the server needs a configured client.
 */
export function createMcpUpstream(options: McpUpstreamOptions, deps: UpstreamDeps): Upstream {
  const { provider, client: configured } = options
  const { name } = provider
  const { clock } = deps
  const endpoint = new URL(options.endpoint)
  const connections = createConnections(provider, [options.endpoint], deps, undefined, MOST_PAGE_BYTES)
  const ownClient = configured === undefined ? undefined : createConfiguredClient(name, configured, deps)
  const registered = new Map<string, UpstreamClient>()
  let found: Found | undefined
  let flight: Promise<Found> | undefined

  const clientAt = (server: AuthorizationServer, scopes: readonly string[]): UpstreamClient => {
    if (ownClient !== undefined) return ownClient
    const { kind, at } = mcpClientAt(server, options)
    if (kind === 'document') return documentClient(at, clock)
    const registrationEndpoint = at
    const key = JSON.stringify([server.issuer, registrationEndpoint])
    const known = registered.get(key)
    if (known !== undefined) return known
    if (registered.size >= MOST_CLIENTS) registered.clear()
    // Web clients have no http redirect URI (OpenID Connect Dynamic Client Registration §2).
    const isLocal = deps.registration?.redirectUris(name).some((uri) => uri.startsWith('http:')) === true
    const applicationType = isLocal ? 'native' : 'web'
    const made = createRegisteredClient(
      { name, scopes, registration: { registrationEndpoint }, method: server.authMethod, applicationType },
      connections,
      deps,
    )
    registered.set(key, made)
    return made
  }

  const discover = async (): Promise<Found> => {
    const challenge = readChallenge(await challengeOf(options.endpoint, connections))
    const access = await discoverResource(endpoint, challenge, discoveryContext(name, connections, deps))
    const scopes = options.scopes.length > 0 ? options.scopes : access.scopes
    const client = clientAt(access.server, scopes)
    found = { ...access, scopes, client, foundAtMs: clock.now() }
    return found
  }

  const current = (freshMs = FRESH_MS): Promise<Found> => {
    if (found !== undefined && clock.now() - found.foundAtMs < freshMs) return Promise.resolve(found)
    flight ??= discover().finally(() => (flight = undefined))
    return flight
  }

  const ask = (at: Found) => createTokenEndpoint(at.client, {}, connections, deps)
  const tokenEndpoint = ({ server, resource }: Found) => ({
    url: server.tokenEndpoint,
    issuer: server.issuer,
    secretInBody: server.secretInBody,
    more: [['resource', resource]] as const,
  })

  return {
    name,
    identityProvider: endpoint.origin,
    async authorizationUrl(redirect) {
      const { server, resource, client, scopes } = await current(LOGIN_FRESH_MS)
      return authorizationUrl(redirect, {
        endpoint: server.authorizationEndpoint,
        clientId: (await client.current()).clientId,
        scopes: requestedScopes(scopes, redirect),
        nonce: undefined,
        additional: { resource },
      })
    },
    async finish(redirect, callback) {
      const at = await current(LOGIN_FRESH_MS)
      const { issuer, announcesIss, authorizationEndpoint } = at.server
      const { origin, pathname } = new URL(authorizationEndpoint)
      // Its code is not for the server that the metadata name now.
      if (redirect.sentTo !== undefined && redirect.sentTo !== origin + pathname)
        throw new Failure('identity_provider_error', { detail: `${name}: the authorization server changed meanwhile` })
      const code = readCallback(callback, { issuer, announcesIss })
      const read = await ask(at)({ ...tokenEndpoint(at), step: 'code', form: codeForm(code, redirect) })
      const scopes = requestedScopes(at.scopes, redirect)
      const subject = subjectAt(issuer)
      return { tokens: tokensWithoutId(read, { refreshToken: undefined, scopes }), subject, claims: NO_CLAIMS }
    },
    async refresh(tokens, subject, endsAtMs) {
      const { refreshToken } = tokens
      if (refreshToken === undefined) throw new Failure('no_session', { detail: `${name} issued no refresh token` })
      const at = await current()
      if (!isSubjectAt(subject, at.server.issuer))
        throw new Failure('no_session', { detail: `${name} has a different authorization server now` })
      const grant = { step: 'refresh', refreshToken, scopes: tokens.scopes, endsAtMs } as const
      const read = await ask(at)({ ...tokenEndpoint(at), ...grant })
      return { tokens: tokensWithoutId(read, tokens), subject, claims: NO_CLAIMS }
    },
    async revoke(tokens, subject) {
      const { server, client } = await current()
      if (!isSubjectAt(subject, server.issuer)) return false
      const { revocationEndpoint: to, tokenEndpoint: url, issuer, secretInBody } = server
      if (to === undefined) return false
      await createRevocation(client, connections, deps)({ to, url, issuer, secretInBody }, tokens)
      return true
    },
    close: () => connections.close(),
  }
}

/** The challenge of a request without credentials; undefined where the server sends none. */
export async function challengeOf(url: string, { pages }: Connections): Promise<string | undefined> {
  try {
    const { headers } = await pages.request({ method: 'GET', url, headers: { accept: 'text/event-stream' } })
    return headers['www-authenticate']
  } catch (error) {
    throw unanswered(error, 'MCP server')
  }
}

export const discoveryContext = (
  name: string,
  { pages }: Connections,
  { clock }: Pick<UpstreamDeps, 'clock'>,
): DiscoveryContext => ({
  outbound: pages,
  now: () => clock.now(),
  isExactIssuer: true,
  refuse: (what, cause) => new Failure('identity_provider_error', { detail: `${name}: ${what}`, cause }),
})

/** How the proxy becomes a client of an authorization server, and the URL for it. */
export interface McpClient {
  readonly kind: 'document' | 'registration'
  readonly at: string
}

/** The client where none is configured: a metadata document, else registration. Throws `config_error` without either. */
export function mcpClientAt(
  { issuer, takesDocuments, registrationEndpoint }: AuthorizationServer,
  { provider, clientMetadataUrl }: Pick<McpUpstreamOptions, 'provider' | 'clientMetadataUrl'>,
): McpClient {
  if (takesDocuments && clientMetadataUrl !== undefined) return { kind: 'document', at: clientMetadataUrl }
  if (registrationEndpoint !== undefined) return { kind: 'registration', at: registrationEndpoint }
  throw new Failure('config_error', {
    detail: `${provider.name}: ${issuer} supports neither client metadata documents nor registration; set "clientId"`,
  })
}

/** The person's identity is unknown; the issuer is kept, because tokens belong to it. */
const subjectAt = (issuer: string): string => JSON.stringify([issuer, randomUUID()])

/** False for a subject of another kind of provider, which had the same name before. */
const isSubjectAt = (subject: string, issuer: string): boolean => subject.startsWith(`[${JSON.stringify(issuer)},`)

/** A client whose id is the URL of its metadata document; it has no secret. */
function documentClient(url: string, clock: Clock): UpstreamClient {
  const client = clientWithSecret(url, undefined, clock)
  return { current: () => Promise.resolve(client) }
}
