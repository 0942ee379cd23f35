import type { Claims } from '../../core/index.ts'

export const AUTH_METHODS = ['none', 'client_secret_basic', 'client_secret_post', 'private_key_jwt'] as const
export type AuthMethod = (typeof AUTH_METHODS)[number]

export const GRANT_TYPES = ['authorization_code', 'refresh_token'] as const
export type GrantType = (typeof GRANT_TYPES)[number]

/** How a client may sign its assertions (RFC 7523): asymmetric algorithms only. */
export const ASSERTION_ALGORITHMS = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'Ed25519',
  'EdDSA',
] as const

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
  /** `registered`: anybody can claim any name. `document`: its identifier is the URL at which it publishes itself. */
  readonly kind: 'registered' | 'document'
  /** SHA-256 of its secret, base64url; the secret has 256 random bits, so that no slow hash is needed. */
  readonly secretHash: string | undefined
  /** Seconds since the epoch. */
  readonly issuedAt: number
}
