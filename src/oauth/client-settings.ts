import type { SecretHandle } from '../core/index.ts'
import type { ClientCertificate } from '../net/index.ts'

/** A signing key for client assertions (RFC 7523 §2.2) and its header settings. */
export interface AssertionKey {
  /** A JWK, or PEM in PKCS #8, PKCS #1 or SEC 1. */
  readonly secret: SecretHandle
  /** Default: that of the key. */
  readonly algorithm?: string | undefined
  /** Default: that of the JWK. */
  readonly kid?: string | undefined
  /** Its certificate, PEM. */
  readonly certificate?: SecretHandle | undefined
  /** Adds the SHA-1 thumbprint to that of SHA-256. */
  readonly legacyThumbprint?: boolean | undefined
  /** Includes the chain in the header. */
  readonly x5c?: boolean | undefined
}

/** The authentication method of a client at a token endpoint. */
export type ClientSettings =
  | { readonly method: 'none'; readonly clientId: string | undefined }
  | {
      readonly method: 'clientSecretBasic' | 'clientSecretPost'
      readonly clientId: string
      readonly secret: SecretHandle
    }
  | {
      readonly method: 'privateKeyJwt'
      readonly clientId: string
      readonly key: AssertionKey
      /** `tokenEndpoint`, `issuer` or a string. Default: the issuer if known, else the token endpoint. */
      readonly audience?: string | undefined
    }
  | {
      readonly method: 'tokenFile'
      readonly clientId: string | undefined
      readonly token: SecretHandle
      readonly type: 'jwt-bearer' | 'jwt-spiffe'
    }
  | {
      readonly method: 'tlsClient'
      readonly clientId: string
      readonly certificate: SecretHandle
      readonly key: SecretHandle
    }

/** The endpoint a client authenticates at. */
export interface ClientEndpoint {
  readonly url: string
  /** The issuer of the endpoint, if discovered or configured. */
  readonly issuer?: string | undefined
}

/** What client authentication adds to a token request. */
export interface ClientAuthentication {
  readonly form: readonly (readonly [name: string, value: string])[]
  readonly headers: Readonly<Record<string, string>>
}

/** A client of an authorization server. */
export interface OAuthClient {
  /** Builds the authentication of one request. Throws `secret_unavailable` and `config_error`. */
  readonly authenticate: (endpoint: ClientEndpoint) => Promise<ClientAuthentication>
  /** Its credentials: reread after a rejection. */
  readonly secrets: readonly SecretHandle[]
  /** Those whose change means a different client, not only a renewed credential. */
  readonly lasting: readonly SecretHandle[]
  /** Its TLS client certificate (RFC 8705); undefined for other methods. Returns undefined without a usable pair. */
  readonly certificate: (() => ClientCertificate | undefined) | undefined
}
