import {
  type Claims,
  type ClaimValue,
  type EpochMs,
  Failure,
  isLoopbackHost,
  type Outbound,
  OutboundError,
} from '../core/index.ts'
import { metadataUrl, readJsonObject } from '../http/index.ts'
import { authMethodsIn, createDiscovery, discoveryUrls, isSecretInBody } from './discovery.ts'
import { createDocuments } from './documents.ts'
import { scopesIn } from './refresh.ts'

/** The used part of an authorization server's metadata (RFC 8414 §2). */
export interface AuthorizationServer {
  readonly issuer: string
  readonly authorizationEndpoint: string
  readonly tokenEndpoint: string
  /** Client registration endpoint (RFC 7591). */
  readonly registrationEndpoint: string | undefined
  /** RFC 7009. */
  readonly revocationEndpoint: string | undefined
  readonly scopes: readonly string[]
  /** RFC 9207 §3. */
  readonly announcesIss: boolean
  /** Send id and secret in the body, because Basic is not supported. */
  readonly secretInBody: boolean
  /** Authentication method to register: `none`, unless the server does not support it. */
  readonly authMethod: 'none' | 'client_secret_basic' | 'client_secret_post'
  /** Supports client ID metadata documents. */
  readonly takesDocuments: boolean
}

/** Makes the error of a failed discovery: what is missing or wrong, without text of the servers, and its cause. */
export type RefuseDiscovery = (what: string, error?: unknown) => Error

/** The authorization server and resource of an MCP server. */
export interface ResourceAccess {
  /** The protected resource's identifier, for `resource` (RFC 8707). */
  readonly resource: string
  readonly server: AuthorizationServer
  /** Requested scopes; empty: the server's default. */
  readonly scopes: readonly string[]
}

/** Parameters of a 401 or 403 challenge (RFC 6750 §3, RFC 9728 §5.1). */
export interface BearerChallenge {
  readonly resourceMetadata: string | undefined
  readonly scopes: readonly string[]
  /** The token is valid but lacks scopes. */
  readonly lacksScopes: boolean
}

/** Parses a Bearer challenge; malformed parameters are ignored. */
export function readChallenge(challenge: string | undefined): BearerChallenge {
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

export interface DiscoveryContext {
  readonly outbound: Outbound
  readonly now: () => EpochMs
  readonly refuse: RefuseDiscovery
  /** The issuer of the metadata must be equal; by default a trailing slash of an origin is ignored. */
  readonly isExactIssuer?: boolean
}

/**
 * Finds the authorization server from an MCP server's challenge (MCP authorization; RFC 9728, RFC 8414, OpenID
 * Connect Discovery). Throws what `refuse` makes.
 */
export async function discoverResource(
  endpoint: URL,
  asked: BearerChallenge,
  context: DiscoveryContext,
): Promise<ResourceAccess> {
  const { issuer, ...found } = await findProtectedResource(endpoint, asked, context)
  return { ...found, server: await findAuthorizationServer(issuer, context) }
}

/** What an MCP server's challenge and metadata say about access to it. */
export interface ProtectedResource extends Pick<ResourceAccess, 'resource' | 'scopes'> {
  /** The first listed authorization server; the MCP server's origin where it has no metadata. */
  readonly issuer: string
}

/** The first step of `discoverResource` (RFC 9728). Throws what `refuse` makes. */
export async function findProtectedResource(
  endpoint: URL,
  asked: BearerChallenge,
  context: DiscoveryContext,
): Promise<ProtectedResource> {
  const metadata = await findResource(endpoint, asked.resourceMetadata, context)
  const issuer = metadata?.server ?? endpoint.origin
  if (!isSafeUrl(issuer)) throw context.refuse('the MCP server names an authorization server without an https URL')
  const advertised = (metadata?.scopes ?? []).filter(isScope)
  return {
    resource: metadata?.resource ?? withoutFragment(endpoint),
    issuer,
    scopes: asked.scopes.length > 0 ? asked.scopes : advertised,
  }
}

/** The second step: metadata of an authorization server (RFC 8414), which must announce PKCE. Throws as the first. */
export const findAuthorizationServer = async (
  issuer: string,
  context: DiscoveryContext,
): Promise<AuthorizationServer> => readServer(await findServer(issuer, context), context.refuse)

/** Throws for a server that does not support a secure login. */
function readServer(document: Claims, refuse: RefuseDiscovery): AuthorizationServer {
  const {
    authorization_endpoint: authorize,
    token_endpoint: token,
    code_challenge_methods_supported: methods,
    issuer,
  } = document
  if (!isSafeUrl(authorize) || !isSafeUrl(token))
    throw refuse("the authorization server's metadata lack a valid authorization or token endpoint")
  if (!isTextList(methods) || !methods.includes('S256'))
    throw refuse("the authorization server's metadata do not announce PKCE with S256")
  const { registration_endpoint: registration, revocation_endpoint: revocation, scopes_supported: scopes } = document
  return {
    issuer: typeof issuer === 'string' ? issuer : '',
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

/** The protected resource metadata. */
interface ResourceDocument {
  readonly resource: string
  /** The first listed authorization server. */
  readonly server: string | undefined
  readonly scopes: readonly string[]
}

/** The protected resource metadata; undefined when the server has none (2025-03-26 revision). */
async function findResource(
  endpoint: URL,
  named: string | undefined,
  context: DiscoveryContext,
): Promise<ResourceDocument | undefined> {
  const { refuse } = context
  if (named !== undefined && !isSafeUrl(named)) throw refuse("the MCP server's metadata URL is not https")
  const candidates = named === undefined ? [metadataUrl(endpoint.href), metadataUrl(endpoint.origin)] : [named]
  for (const url of new Set(candidates)) {
    const document = await getJson(url, context)
    if (document === undefined) continue
    const { resource, authorization_servers: servers, scopes_supported: scopes } = document
    if (typeof resource !== 'string' || !coversEndpoint(resource, endpoint))
      throw refuse("the MCP server's metadata are for a different resource")
    if (!isTextList(servers) || servers.length === 0) throw refuse('the MCP server names no authorization server')
    return { resource, server: servers[0], scopes: isTextList(scopes) ? scopes : [] }
  }
  if (named !== undefined) throw refuse("the MCP server's metadata are unavailable")
  return undefined
}

/** A token is sent only to its resource (RFC 9728 §7.3, MCP: the endpoint must be within the resource). */
function coversEndpoint(resource: string, endpoint: URL): boolean {
  const url = URL.parse(resource)
  if (url === null || url.origin !== endpoint.origin) return false
  const [outer, inner] = [url.pathname.replace(/\/$/, ''), endpoint.pathname.replace(/\/$/, '')]
  return inner === outer || inner.startsWith(`${outer}/`)
}

/**
 * Fetches an issuer's metadata from the three candidate URLs (MCP authorization). `issuer` must match the requested
 * one.
 */
async function findServer(issuer: string, { outbound, now, refuse, isExactIssuer }: DiscoveryContext): Promise<Claims> {
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
    // Some servers answer 500 for a missing page.
    goesOn: () => true,
    isIssuer: (named) =>
      named === issuer || (isExactIssuer !== true && typeof named === 'string' && URL.parse(named)?.href === href),
  })
  try {
    return await metadata()
  } catch (error) {
    throw refuse("the authorization server's metadata are unavailable", error)
  }
}

const kindOf = (error: unknown): string => (error instanceof OutboundError ? error.kind : 'no response')

async function getJson(url: string, { outbound, refuse }: DiscoveryContext): Promise<Claims | undefined> {
  try {
    const { status, body } = await outbound.request({ method: 'GET', url, headers: { accept: 'application/json' } })
    return status === 200 ? readJsonObject(body) : undefined
  } catch (error) {
    throw refuse("the MCP server's metadata are unavailable", error)
  }
}

/** True for a URL that is safe to request or open: https, or plain http on this machine. */
export function isSafeUrl(url: unknown): url is string {
  const parsed = typeof url === 'string' ? URL.parse(url) : null
  if (parsed === null || parsed.username !== '' || parsed.password !== '') return false
  return parsed.protocol === 'https:' || (parsed.protocol === 'http:' && isLoopbackHost(parsed.hostname))
}

const isTextList = (value: ClaimValue | undefined): value is readonly string[] =>
  Array.isArray(value) && value.every((one) => typeof one === 'string')

const withoutFragment = (url: URL): string => url.href.replace(/#.*$/, '')
