import { type Claims, type ClaimValue, Failure, type Outbound, OutboundError } from '../core/index.ts'
import { metadataUrl, readJsonObject } from '../http/index.ts'
import {
  authMethodsIn,
  createDiscovery,
  createDocuments,
  discoveryUrls,
  isSecretInBody,
  scopesIn,
} from '../oauth/index.ts'
import { isSafeUrl, loginRefusal, textOf } from './server-calls.ts'

/** What is used of an authorization server's metadata (RFC 8414 §2). */
export interface LoginServer {
  readonly issuer: string
  readonly authorizationEndpoint: string
  readonly tokenEndpoint: string
  /** Where clients register (RFC 7591). */
  readonly registrationEndpoint: string | undefined
  /** RFC 7009. */
  readonly revocationEndpoint: string | undefined
  readonly scopes: readonly string[]
  /** RFC 9207 §3. */
  readonly announcesIss: boolean
  /** Id and secret go into the body, because Basic is not on offer. */
  readonly secretInBody: boolean
  /** What a client registers: to be a public one, unless the server takes none of these. */
  readonly authMethod: 'none' | 'client_secret_basic' | 'client_secret_post'
  /** It takes the URL of a metadata document for a client id. */
  readonly takesDocuments: boolean
}

/** Where to log in for an MCP server. */
export interface Destination {
  /** The protected resource's identifier, for `resource` (RFC 8707). */
  readonly resource: string
  readonly server: LoginServer
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
    scopes: scopesIn(scope).filter(isScope),
    lacksScopes: parameter('error') === 'insufficient_scope',
  }
}

/** RFC 6749 §3.3. */
const isScope = (text: string): boolean => /^[\x21\x23-\x5b\x5d-\x7e]{1,256}$/.test(text)

/**
 * From the challenge of an MCP server to its authorization server (MCP authorization; RFC 9728, RFC 8414, OpenID Connect
 * Discovery). Throws `CredentialRefusal` login_failed, with what is missing.
 */
export async function discover(
  endpoint: URL,
  asked: Asked,
  { outbound, now }: { readonly outbound: Outbound; readonly now: () => number },
): Promise<Destination> {
  const metadata = await findResource(endpoint, asked.resourceMetadata, outbound)
  const issuer = metadata?.server ?? endpoint.origin
  if (!isSafeUrl(issuer)) throw loginRefusal('the authorization server that the MCP server names has no https address')
  const server = readServer(await findServer(issuer, outbound, now))
  const advertised = (metadata?.scopes ?? []).filter(isScope)
  return {
    resource: metadata?.resource ?? withoutFragment(endpoint),
    server,
    scopes: asked.scopes.length > 0 ? asked.scopes : advertised,
  }
}

/** Throws `CredentialRefusal` for a server where nobody can log in safely. */
function readServer(document: Claims): LoginServer {
  const {
    authorization_endpoint: authorize,
    token_endpoint: token,
    code_challenge_methods_supported: methods,
  } = document
  if (!isSafeUrl(authorize) || !isSafeUrl(token))
    throw loginRefusal('the authorization server has no usable authorization and token endpoint')
  if (!isTextList(methods) || !methods.includes('S256'))
    throw loginRefusal('the authorization server does not say that it supports PKCE with S256')
  const { registration_endpoint: registration, revocation_endpoint: revocation, scopes_supported: scopes } = document
  return {
    issuer: textOf(document, 'issuer') ?? '',
    authorizationEndpoint: authorize,
    tokenEndpoint: token,
    registrationEndpoint: isSafeUrl(registration) ? registration : undefined,
    revocationEndpoint: isSafeUrl(revocation) ? revocation : undefined,
    scopes: isTextList(scopes) ? scopes : [],
    announcesIss: document['authorization_response_iss_parameter_supported'] === true,
    secretInBody: isSecretInBody(document),
    authMethod: AUTH_METHODS.find((method) => authMethodsIn(document)?.includes(method)) ?? 'none',
    takesDocuments: document['client_id_metadata_document_supported'] === true,
  }
}

const AUTH_METHODS = ['none', 'client_secret_basic', 'client_secret_post'] as const

/** What a document says about the endpoint. */
interface ResourceDocument {
  readonly resource: string
  /** The first of its authorization servers. */
  readonly server: string | undefined
  readonly scopes: readonly string[]
}

/** The document about the endpoint; undefined where there is none (servers of the 2025-03-26 revision). */
async function findResource(
  endpoint: URL,
  named: string | undefined,
  outbound: Outbound,
): Promise<ResourceDocument | undefined> {
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
    return { resource, server: servers[0], scopes: isTextList(scopes) ? scopes : [] }
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

/**
 * The metadata of an issuer, from the three places where they may be (MCP authorization); their `issuer` must be the one
 * that was asked for, an origin with its slash being the same as without.
 */
async function findServer(issuer: string, outbound: Outbound, now: () => number): Promise<Claims> {
  const { origin, pathname, href } = new URL(issuer)
  const path = pathname === '/' ? '' : pathname.replace(/\/$/, '')
  const [appended, inserted] = discoveryUrls(origin + path)
  const clock = { now }
  const unanswered = (error: unknown, what: string): Failure =>
    new Failure('identity_provider_unavailable', { detail: `${what}: ${kindOf(error)}`, cause: error })
  const { metadata } = createDiscovery({
    issuerUrl: issuer,
    documents: createDocuments(outbound, clock, unanswered),
    clock,
    read: (document) => document,
    places: [...new Set([inserted, `${origin}/.well-known/openid-configuration${path}`, appended])],
    // Some answer 500 for a page that they do not have.
    goesOn: () => true,
    isIssuer: (named) => typeof named === 'string' && URL.parse(named)?.href === href,
  })
  try {
    return await metadata()
  } catch (error) {
    throw loginRefusal('the metadata of the authorization server can not be read', error)
  }
}

const kindOf = (error: unknown): string => (error instanceof OutboundError ? error.kind : 'no answer')

async function getJson(url: string, outbound: Outbound): Promise<Claims | undefined> {
  try {
    const { status, body } = await outbound.request({ method: 'GET', url, headers: { accept: 'application/json' } })
    return status === 200 ? readJsonObject(body) : undefined
  } catch (error) {
    throw loginRefusal('the metadata of the MCP server can not be read', error)
  }
}

const isTextList = (value: ClaimValue | undefined): value is readonly string[] =>
  Array.isArray(value) && value.every((one) => typeof one === 'string')

const withoutFragment = (url: URL): string => url.href.replace(/#.*$/, '')
