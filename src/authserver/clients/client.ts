import type { Claims } from '../../core/index.ts'
import { type EmbeddedAuthServer, JWT_BEARER, takesWorkloads } from '../../resources/index.ts'

export const AUTH_METHODS = ['none', 'client_secret_basic', 'client_secret_post', 'private_key_jwt'] as const
export type AuthMethod = (typeof AUTH_METHODS)[number]

const GRANT_TYPES = ['authorization_code', 'refresh_token', JWT_BEARER, 'client_credentials'] as const
export type GrantType = (typeof GRANT_TYPES)[number]

/** The grants of a server: what comes of logins, and what its configuration adds. */
export const grantTypesOf = (spec: EmbeddedAuthServer): readonly GrantType[] =>
  GRANT_TYPES.filter((type) => {
    if (type === JWT_BEARER) return spec.identityAssertions !== undefined || takesWorkloads(spec)
    return type !== 'client_credentials' || (spec.clients ?? []).some(({ grantTypes }) => grantTypes.includes(type))
  })

/** Whether clients are known by metadata documents here. */
export const readsDocuments = ({ cimd }: Pick<EmbeddedAuthServer, 'cimd'>): boolean => cimd?.enabled !== false

/** How clients of a server may authenticate: those that register, those that are known by a document, those that are configured. */
export function authMethodsOf(
  spec: Pick<EmbeddedAuthServer, 'allowConfidentialClientRegistration' | 'cimd' | 'clients'>,
): readonly AuthMethod[] {
  const { allowConfidentialClientRegistration, clients = [] } = spec
  const isConfidential = allowConfidentialClientRegistration !== false
  const hasSecrets = isConfidential || clients.some(({ clientSecretRef }) => clientSecretRef !== undefined)
  const hasKeys =
    isConfidential || readsDocuments(spec) || clients.some(({ clientSecretRef }) => clientSecretRef === undefined)
  return AUTH_METHODS.filter((method) => method === 'none' || (method === 'private_key_jwt' ? hasKeys : hasSecrets))
}

/** What a client says of itself, after our rules: the members of RFC 7591 §2 that are kept. */
export interface ClientMetadata {
  readonly name: string | undefined
  readonly redirectUris: readonly string[]
  readonly authMethod: AuthMethod
  readonly grantTypes: readonly GrantType[]
  /** Scopes of ours, space-separated; undefined when it named none. */
  readonly scope: string | undefined
  readonly applicationType: 'native' | 'web'
  readonly jwksUri: string | undefined
  readonly jwks: Claims | undefined
  /** The one algorithm of its assertions, where it names one. */
  readonly assertionAlgorithm: string | undefined
}

/** A client that we know: registered here, or known by its metadata document (CIMD). */
export interface Client extends ClientMetadata {
  readonly id: string
  /**
   * `registered`: anybody can claim any name. `document`: its identifier is the URL at which it publishes itself. `configured`: the
   * operator made it.
   */
  readonly kind: 'registered' | 'document' | 'configured'
  /** SHA-256 of its secret, base64url; the secret has 256 random bits, so that no slow hash is needed. */
  readonly secretHash: string | undefined
  /** Seconds since the epoch. */
  readonly issuedAt: number
  /** What tokens without a login may be for; only of a configured one. */
  readonly bounds?: ClientBounds
}

/** What tokens of a caller without a login may be for. */
export interface ClientBounds {
  /** Names of resources; undefined: all. */
  readonly resources: readonly string[] | undefined
  /** Undefined: none for itself, and no bound of its own beside an assertion's. */
  readonly scopes: readonly string[] | undefined
  readonly lifetimeMs: number | undefined
}
