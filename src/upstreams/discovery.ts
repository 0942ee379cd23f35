import type { Claims, ClaimValue, Clock } from '../core/index.ts'
import {
  ALGORITHMS,
  createDiscovery,
  type Discovery,
  type Documents,
  endpointOf,
  isSecretInBody,
  unusableDocument,
  withAliases,
} from '../oauth/index.ts'

/** The used part of an OpenID provider's metadata (OpenID Connect Discovery §3). */
export interface OidcMetadata {
  readonly authorizationEndpoint: string
  readonly tokenEndpoint: string
  readonly jwksUri: string
  readonly userInfoEndpoint: string | undefined
  /** RFC 7009. Optional for logins: undefined for an invalid one, too. */
  readonly revocationEndpoint: string | undefined
  /** Accepted signature algorithms of its ID tokens; never empty. */
  readonly algorithms: ReadonlySet<string>
  /** Send id and secret in the body, because Basic is not supported. */
  readonly secretInBody: boolean
  /** RFC 9207 §3. */
  readonly announcesIss: boolean
}

const isList = (value: ClaimValue | undefined): value is readonly ClaimValue[] => Array.isArray(value)

function read(document: Claims, issuer: string, isMutualTls: boolean): OidcMetadata {
  const endpoint = (name: string) => endpointOf(document, name, issuer)
  // Endpoints with client certificates.
  const own = isMutualTls ? withAliases(document) : document
  const announced = document['id_token_signing_alg_values_supported']
  const algorithms = isList(announced) ? ALGORITHMS.intersection(new Set<unknown>(announced)) : new Set(['RS256'])
  if (algorithms.size === 0) throw unusableDocument('no accepted signature algorithm for ID tokens')
  return {
    authorizationEndpoint: endpoint('authorization_endpoint'),
    tokenEndpoint: endpointOf(own, 'token_endpoint', issuer),
    jwksUri: endpoint('jwks_uri'),
    userInfoEndpoint: document['userinfo_endpoint'] === undefined ? undefined : endpoint('userinfo_endpoint'),
    revocationEndpoint: unlessUnusable(() => endpointOf(own, 'revocation_endpoint', issuer)),
    algorithms,
    secretInBody: isSecretInBody(document),
    announcesIss: document['authorization_response_iss_parameter_supported'] === true,
  }
}

function unlessUnusable<T>(look: () => T): T | undefined {
  try {
    return look()
  } catch {
    return undefined
  }
}

/**
 * Discovery of an OpenID provider; with TLS client certificates its mTLS aliases (RFC 8705 §5). Throws
 * `identity_provider_unavailable` and `identity_provider_error`.
 */
export function createOidcDiscovery(
  issuerUrl: string,
  options: { readonly documents: Documents; readonly clock: Clock; readonly isMutualTls: boolean },
): Discovery<OidcMetadata> {
  const { documents, clock, isMutualTls } = options
  return createDiscovery({ issuerUrl, documents, clock, read: (document) => read(document, issuerUrl, isMutualTls) })
}
