import * as oauth from 'oauth4webapi'
import { CredentialRefusal, type Outbound } from '../core/index.ts'
import { metadataUrl } from '../http/index.ts'
import { callOptions, isSafeUrl, loginRefusal } from './server-calls.ts'

/** Where to log in for an MCP server. */
export interface Destination {
  /** The protected resource's identifier, for `resource` (RFC 8707). */
  readonly resource: string
  readonly server: oauth.AuthorizationServer
  /** Asked for; empty: whatever the server gives by default. */
  readonly scopes: readonly string[]
}

/** What a 401 or 403 asks for (RFC 6750 §3, RFC 9728 §5.1). */
export interface Asked {
  readonly resourceMetadata: string | undefined
  readonly scopes: readonly string[]
  /** The token is good, but not for this. */
  readonly lacksScopes: boolean
}

/** Reads the parameters of a Bearer challenge, as far as they are well formed. */
export function readChallenge(challenge: string | undefined): Asked {
  const parameter = (name: string): string | undefined => {
    const found = new RegExp(`(?:^|[ ,])${name}=(?:"((?:[^"\\\\]|\\\\.){0,4096})"|([^ ,"]{1,4096}))`, 'i').exec(
      challenge ?? '',
    )
    return (found?.[1] ?? found?.[2])?.replace(/\\(.)/g, '$1')
  }
  const scope = parameter('scope') ?? ''
  return {
    resourceMetadata: parameter('resource_metadata'),
    scopes: scope.split(' ').filter(isScope),
    lacksScopes: parameter('error') === 'insufficient_scope',
  }
}

/** RFC 6749 §3.3. */
const isScope = (text: string): boolean => /^[\x21\x23-\x5b\x5d-\x7e]{1,256}$/.test(text)

/**
 * From the challenge of an MCP server to its authorization server (MCP authorization; RFC 9728, RFC 8414, OpenID Connect
 * Discovery). Throws `CredentialRefusal` login_failed, with what is missing.
 */
export async function discover(endpoint: URL, asked: Asked, outbound: Outbound): Promise<Destination> {
  const metadata = await findResource(endpoint, asked.resourceMetadata, outbound)
  const issuer = metadata?.authorization_servers?.[0] ?? endpoint.origin
  if (!isSafeUrl(issuer)) throw loginRefusal('the authorization server that the MCP server names has no https address')
  const server = await findServer(issuer, outbound)
  const { authorization_endpoint: authorize, token_endpoint: token, code_challenge_methods_supported: methods } = server
  if (!isSafeUrl(authorize) || !isSafeUrl(token))
    throw loginRefusal('the authorization server has no usable authorization and token endpoint')
  if (methods?.includes('S256') !== true)
    throw loginRefusal('the authorization server does not say that it supports PKCE with S256')
  const advertised = (metadata?.scopes_supported ?? []).filter(isScope)
  return {
    resource: metadata?.resource ?? withoutFragment(endpoint),
    server,
    scopes: asked.scopes.length > 0 ? asked.scopes : advertised,
  }
}

/** The document about the endpoint; undefined where there is none (servers of the 2025-03-26 revision). */
async function findResource(
  endpoint: URL,
  named: string | undefined,
  outbound: Outbound,
): Promise<oauth.ResourceServer | undefined> {
  if (named !== undefined && !isSafeUrl(named))
    throw loginRefusal('the metadata of the MCP server has no https address')
  const candidates = named === undefined ? [metadataUrl(endpoint.href), metadataUrl(endpoint.origin)] : [named]
  for (const url of new Set(candidates)) {
    const document = await getJson(url, outbound)
    if (document === undefined) continue
    const { resource, authorization_servers: servers, scopes_supported: scopes } = document
    if (typeof resource !== 'string' || !coversEndpoint(resource, endpoint))
      throw loginRefusal('the metadata of the MCP server is about another resource')
    if (!isTextList(servers) || servers.length === 0) throw loginRefusal('the MCP server names no authorization server')
    return {
      resource,
      authorization_servers: [...servers],
      ...(isTextList(scopes) ? { scopes_supported: [...scopes] } : {}),
    }
  }
  if (named !== undefined) throw loginRefusal('the metadata of the MCP server can not be read')
  return undefined
}

/** A token for a resource goes to no other (RFC 9728 §7.3, MCP: the endpoint must lie in the resource). */
function coversEndpoint(resource: string, endpoint: URL): boolean {
  const url = URL.parse(resource)
  if (url === null || url.origin !== endpoint.origin) return false
  const [outer, inner] = [url.pathname.replace(/\/$/, ''), endpoint.pathname.replace(/\/$/, '')]
  return inner === outer || inner.startsWith(`${outer}/`)
}

/** The metadata of an issuer, from the three places where it may be; its `issuer` must be the one that was asked for. */
async function findServer(issuer: string, outbound: Outbound): Promise<oauth.AuthorizationServer> {
  const url = new URL(issuer)
  const path = url.pathname === '/' ? '' : url.pathname.replace(/\/$/, '')
  const places = [
    `${url.origin}/.well-known/oauth-authorization-server${path}`,
    `${url.origin}/.well-known/openid-configuration${path}`,
    `${url.origin}${path}/.well-known/openid-configuration`,
  ]
  let wrong: unknown
  for (const place of new Set(places)) {
    try {
      const { [oauth.customFetch]: get } = callOptions(outbound, place)
      const response = await get(place, { method: 'GET', headers: { accept: 'application/json' } })
      if (response.status === 200) return await oauth.processDiscoveryResponse(url, response)
    } catch (error) {
      if (error instanceof CredentialRefusal) throw error
      wrong = error
    }
  }
  throw loginRefusal('the metadata of the authorization server can not be read', wrong)
}

async function getJson(url: string, outbound: Outbound): Promise<Readonly<Record<string, unknown>> | undefined> {
  try {
    const { status, body } = await outbound.request({ method: 'GET', url, headers: { accept: 'application/json' } })
    if (status !== 200) return undefined
    const value: unknown = JSON.parse(body.toString('utf8'))
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Readonly<Record<string, unknown>>)
      : undefined
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw loginRefusal('the metadata of the MCP server can not be read', error)
  }
}

const isTextList = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every((one) => typeof one === 'string')

const withoutFragment = (url: URL): string => url.href.replace(/#.*$/, '')
