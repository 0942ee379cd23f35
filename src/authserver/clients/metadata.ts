import type { ClaimValue, Claims } from '../../core/index.ts'
import { type EmbeddedAuthServer, JWT_BEARER, SIGNATURE_ALGORITHMS } from '../../resources/index.ts'
import { scopesIn } from '../../oauth/index.ts'
import { OAuthError } from '../oauth-error.ts'
import { AUTH_METHODS, type AuthMethod, type ClientMetadata, type GrantType } from './client.ts'
import { isOnOwnDevice, redirectKind } from './redirect-uri.ts'

const MOST_REDIRECT_URIS = 10
const MOST_NAME = 256
const MOST_URL = 2_048
const MOST_KEYS = 20
const MOST_LIST = 32

/** Fields that would require outbound calls or unsupported features. */
const REFUSED = ['sector_identifier_uri', 'request_uris'] as const

/** The server's capabilities that limit client metadata. */
export interface ServerCapabilities {
  readonly scopes: ReadonlySet<string>
  /** The grants of the server. */
  readonly grantTypes: readonly GrantType[]
  /** Scopes that each client gets in addition to those it requests. */
  readonly baseline: readonly string[]
  /** Whether registration accepts confidential clients. */
  readonly allowsConfidential: boolean
  /** Redirect URIs whose clients always get a secret. */
  readonly secretFor: ReadonlySet<string>
}

/** Derives the capabilities from the configuration. */
export function capabilitiesOf(
  spec: Pick<
    EmbeddedAuthServer,
    | 'baselineClientScopes'
    | 'allowConfidentialClientRegistration'
    | 'forceConfidentialRedirectUris'
    | 'identityAssertions'
  >,
  { scopes, grantTypes }: Pick<ServerCapabilities, 'scopes' | 'grantTypes'>,
): ServerCapabilities {
  return {
    scopes,
    // Workloads need no client.
    grantTypes: grantTypes.filter((type) => type !== JWT_BEARER || spec.identityAssertions !== undefined),
    baseline: (spec.baselineClientScopes ?? []).filter((scope) => scopes.has(scope)),
    allowsConfidential: spec.allowConfidentialClientRegistration !== false,
    secretFor: new Set(spec.forceConfidentialRedirectUris),
  }
}

/**
 * Validates client metadata (RFC 7591 §2, authserver.md §3). Unsupported grants, response types and scopes are
 * removed, so that the response lists what was registered; other unsupported values are rejected. `from`: documents
 * allow neither private-use schemes nor shared secrets, and their `client_id` must be checked before. Throws
 * `OAuthError`: `invalid_redirect_uri`, `invalid_client_metadata`.
 */
export function readClientMetadata(
  document: Claims,
  {
    from,
    onIgnored,
    ...capabilities
  }: ServerCapabilities & {
    readonly from: 'registration' | 'document'
    /** Called with the number of invalid redirect URIs that were removed from a document. */
    readonly onIgnored?: (count: number) => void
  },
): ClientMetadata {
  for (const name of REFUSED) if (given(document, name) !== undefined) throw invalid(`${name} is not supported`)
  const grantTypes = readGrantTypes(document, capabilities.grantTypes)
  const isNeeded = grantTypes.includes('authorization_code')
  const redirectUris = readRedirectUris(document, { from, isNeeded, onIgnored })
  const method = readAuthMethod(document, from)
  const authMethod = from === 'registration' ? registeredMethod(method, redirectUris, capabilities) : method
  return {
    name: readName(document),
    redirectUris,
    authMethod,
    grantTypes,
    scope: readScope(document, capabilities),
    applicationType: readApplicationType(document),
    ...readKeys(document, authMethod),
  }
}

/** The field's value; null counts as absent (RFC 7591 §2). */
const given = (document: Claims, name: string): ClaimValue | undefined => document[name] ?? undefined

const invalid = (description: string): OAuthError => new OAuthError('invalid_client_metadata', description)

/** A client without logins needs none. */
function readRedirectUris(
  document: Claims,
  options: {
    readonly from: 'registration' | 'document'
    readonly isNeeded: boolean
    readonly onIgnored: ((count: number) => void) | undefined
  },
): readonly string[] {
  const { from, isNeeded, onIgnored } = options
  const value = given(document, 'redirect_uris') ?? (isNeeded ? undefined : [])
  const refuse = (why: string) => new OAuthError('invalid_redirect_uri', `redirect_uris ${why}`)
  if (!Array.isArray(value)) throw refuse('must be an array')
  const uris = [...new Set(value as readonly ClaimValue[])]
  if ((isNeeded && uris.length === 0) || uris.length > MOST_REDIRECT_URIS)
    throw refuse(`must have 1 to ${MOST_REDIRECT_URIS} members`)
  const problems = uris.map((uri) => problemOf(uri, from))
  const usable = uris.filter((_uri, index) => problems[index] === undefined) as string[]
  const problem = problems.find((one) => one !== undefined)
  if (problem === undefined) return usable
  if (from === 'registration' || usable.length === 0) throw refuse(problem)
  onIgnored?.(uris.length - usable.length)
  return usable
}

/** Why a redirect URI can't be registered; undefined for a valid one. */
function problemOf(uri: ClaimValue, from: 'registration' | 'document'): string | undefined {
  const kind = typeof uri === 'string' ? redirectKind(uri) : undefined
  if (kind === undefined)
    return 'may be https URLs, http loopback URLs or URIs with a private-use scheme, without fragment'
  return kind === 'private' && from === 'document'
    ? 'of a metadata document may not have a private-use scheme'
    : undefined
}

function readName(document: Claims): string | undefined {
  const name = given(document, 'client_name')
  if (name === undefined || name === '') return undefined
  if (typeof name !== 'string' || name.length > MOST_NAME || /\p{Cc}/u.test(name))
    throw invalid(`client_name must be a string of at most ${MOST_NAME} characters`)
  return name
}

function readAuthMethod(document: Claims, from: 'registration' | 'document'): AuthMethod {
  const method = given(document, 'token_endpoint_auth_method') ?? 'none'
  const known = AUTH_METHODS.find((one) => one === method)
  if (known === undefined) throw invalid(`token_endpoint_auth_method must be one of ${AUTH_METHODS.join(', ')}`)
  if (from === 'document' && known.startsWith('client_secret'))
    throw invalid('a client with a metadata document may not use a shared secret')
  return known
}

/**
 * The registered authentication method: the client's, unless it claims to be public and its redirect URI is listed to
 * get a secret anyway (RFC 7591 §3.2.1). Any other client that registers that URI gets a secret whose codes go there.
 */
function registeredMethod(
  method: AuthMethod,
  redirectUris: readonly string[],
  capabilities: ServerCapabilities,
): AuthMethod {
  if (method !== 'none') {
    if (!capabilities.allowsConfidential)
      throw invalid('token_endpoint_auth_method must be none, only public clients are registered here')
    return method
  }
  if (!redirectUris.some((uri) => capabilities.secretFor.has(uri))) return method
  if (redirectUris.some(isOnOwnDevice))
    throw new OAuthError(
      'invalid_redirect_uri',
      'a client with a secret may not have loopback or private-use redirect_uris',
    )
  return 'client_secret_post'
}

/** A list of short strings, or undefined when the member is absent. */
function readList(document: Claims, name: string): readonly string[] | undefined {
  const value = given(document, name)
  if (value === undefined) return undefined
  const isList = Array.isArray(value) && value.length <= MOST_LIST
  const texts = isList ? (value as readonly ClaimValue[]).filter((one) => typeof one === 'string') : []
  if (!isList || texts.length !== value.length) throw invalid(`${name} must be an array of strings`)
  return texts
}

function readGrantTypes(document: Claims, offered: readonly GrantType[]): readonly GrantType[] {
  const asked = readList(document, 'grant_types') ?? ['authorization_code']
  // Client credentials are for configured clients only.
  const kept = offered.filter((type) => asked.includes(type) && type !== 'client_credentials')
  if (!kept.includes('authorization_code')) {
    if (kept.includes(JWT_BEARER)) return [JWT_BEARER]
    throw invalid('grant_types must include authorization_code')
  }
  const responses = readList(document, 'response_types') ?? ['code']
  if (!responses.includes('code')) throw invalid('response_types must include code')
  return kept
}

function readScope(document: Claims, { scopes, baseline }: ServerCapabilities): string | undefined {
  const scope = given(document, 'scope')
  if (scope === undefined) return undefined
  if (typeof scope !== 'string') throw invalid('scope must be a string')
  const kept = [...new Set([...scopesIn(scope).filter((one) => scopes.has(one)), ...baseline])]
  return kept.length === 0 ? undefined : kept.join(' ')
}

function readApplicationType(document: Claims): 'native' | 'web' {
  const type = given(document, 'application_type') ?? 'native'
  if (type !== 'native' && type !== 'web') throw invalid('application_type must be native or web')
  return type
}

type Keys = Pick<ClientMetadata, 'jwks' | 'jwksUri' | 'assertionAlgorithm'>

/** The key set of a client that signs assertions; ignored for other clients. */
function readKeys(document: Claims, authMethod: AuthMethod): Keys {
  if (authMethod !== 'private_key_jwt') return { jwks: undefined, jwksUri: undefined, assertionAlgorithm: undefined }
  const jwks = given(document, 'jwks')
  const jwksUri = given(document, 'jwks_uri')
  if ((jwks === undefined) === (jwksUri === undefined))
    throw invalid('private_key_jwt needs exactly one of jwks and jwks_uri')
  if (jwks !== undefined && !isKeySet(jwks)) throw invalid(`jwks must be a set of 1 to ${MOST_KEYS} public keys`)
  if (jwksUri !== undefined && !isHttpsUrl(jwksUri)) throw invalid('jwks_uri must be an https URL')
  const algorithm = given(document, 'token_endpoint_auth_signing_alg')
  if (algorithm !== undefined && !SIGNATURE_ALGORITHMS.some((one) => one === algorithm))
    throw invalid('token_endpoint_auth_signing_alg must be an asymmetric algorithm')
  return {
    jwks: jwks as Claims | undefined,
    jwksUri: jwksUri as string | undefined,
    assertionAlgorithm: algorithm as string | undefined,
  }
}

/** Fields of private and symmetric keys, which must not be published. */
const PRIVATE_MEMBERS = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k', 'priv'] as const

function isKeySet(value: ClaimValue): boolean {
  const keys = typeof value === 'object' && value !== null ? (value as Claims).keys : undefined
  if (!Array.isArray(keys) || keys.length === 0 || keys.length > MOST_KEYS) return false
  return (keys as readonly ClaimValue[]).every(
    (key) =>
      typeof key === 'object' &&
      key !== null &&
      !Array.isArray(key) &&
      typeof (key as Claims).kty === 'string' &&
      PRIVATE_MEMBERS.every((member) => given(key as Claims, member) === undefined),
  )
}

function isHttpsUrl(value: ClaimValue): boolean {
  if (typeof value !== 'string' || value.length > MOST_URL || !value.startsWith('https://')) return false
  const url = URL.parse(value)
  return url !== null && url.username === '' && url.password === '' && url.hash === ''
}
