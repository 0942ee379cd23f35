import type { Claims } from '../../core/index.ts'
import { type EmbeddedAuthServer, JWT_BEARER, takesWorkloads } from '../../resources/index.ts'

export const AUTH_METHODS = ['none', 'client_secret_basic', 'client_secret_post', 'private_key_jwt'] as const
export type AuthMethod = (typeof AUTH_METHODS)[number]

const GRANT_TYPES = ['authorization_code', 'refresh_token', JWT_BEARER, 'client_credentials'] as const
export type GrantType = (typeof GRANT_TYPES)[number]

/** The grants of a server: those of logins, and those that its configuration adds. */
export const grantTypesOf = (spec: EmbeddedAuthServer): readonly GrantType[] =>
  GRANT_TYPES.filter((type) => {
    if (type === JWT_BEARER) return spec.identityAssertions !== undefined || takesWorkloads(spec)
    return type !== 'client_credentials' || (spec.clients ?? []).some(({ grantTypes }) => grantTypes.includes(type))
  })

/** Whether the server supports client ID metadata documents. */
export const readsDocuments = ({ cimd }: Pick<EmbeddedAuthServer, 'cimd'>): boolean => cimd?.enabled !== false

/** Authentication methods for registered, document-based and configured clients. */
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

/** Validated client metadata: the supported fields of RFC 7591 §2. */
export interface ClientMetadata {
  readonly name: string | undefined
  readonly redirectUris: readonly string[]
  readonly authMethod: AuthMethod
  readonly grantTypes: readonly GrantType[]
  /** Supported scopes, space-separated; undefined when the client sent none. */
  readonly scope: string | undefined
  readonly applicationType: 'native' | 'web'
  readonly jwksUri: string | undefined
  readonly jwks: Claims | undefined
  /** `token_endpoint_auth_signing_alg`, if the client sent it. */
  readonly assertionAlgorithm: string | undefined
}

/** A known client: registered, configured, or with a metadata document (CIMD). */
export interface Client extends ClientMetadata {
  readonly id: string
  /**
   * `registered`: unverified name. `document`: its identifier is the URL of its metadata. `configured`: from the
   * configuration.
   */
  readonly kind: 'registered' | 'document' | 'configured'
  /** SHA-256 of its secret, base64url; the secret has 256 random bits, so a slow hash is unnecessary. */
  readonly secretHash: string | undefined
  /** Seconds since the epoch. */
  readonly issuedAt: number
  /** Limits of tokens without a login; only for configured clients. */
  readonly bounds?: ClientBounds
}

/** Limits of tokens without a login. */
export interface ClientBounds {
  /** Names of resources; undefined: all. */
  readonly resources: readonly string[] | undefined
  /** Undefined: none for the client itself, and no limit on those of an assertion. */
  readonly scopes: readonly string[] | undefined
  readonly lifetimeMs: number | undefined
}
