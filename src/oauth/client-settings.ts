import type { SecretHandle } from '../core/index.ts'
import type { ClientCertificate } from '../net/index.ts'

/** A key that signs client assertions (RFC 7523 §2.2), with what its header says of it. */
export interface AssertionKey {
  /** A JWK, or PEM in PKCS #8, PKCS #1 or SEC 1. */
  readonly secret: SecretHandle
  /** Default: that of the key. */
  readonly algorithm?: string | undefined
  /** Default: that of the JWK. */
  readonly kid?: string | undefined
  /** Its certificate, PEM. */
  readonly certificate?: SecretHandle | undefined
  /** SHA-1 thumbprint beside that of SHA-256. */
  readonly legacyThumbprint?: boolean | undefined
  /** The chain goes into the header. */
  readonly x5c?: boolean | undefined
}

/** How one client authenticates at a token endpoint. */
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
      /** `tokenEndpoint`, `issuer` or a text. Default: the issuer where it is known, else the token endpoint. */
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

/** Where a client authenticates. */
export interface ClientEndpoint {
  readonly url: string
  /** The issuer whose endpoint it is, where it is known: discovered, or said by the config. */
  readonly issuer?: string | undefined
}

/** What authenticating the client adds to a token request. */
export interface ClientAuthentication {
  readonly form: readonly (readonly [name: string, value: string])[]
  readonly headers: Readonly<Record<string, string>>
}

/** One client of an authorization server. */
export interface OAuthClient {
  /** What one request is sent with; made anew for each. Throws `secret_unavailable` and `config_error`. */
  readonly authenticate: (endpoint: ClientEndpoint) => Promise<ClientAuthentication>
  /** What it authenticates with: looked at again when it is refused. */
  readonly secrets: readonly SecretHandle[]
  /** Those of them whose change is another client and not only a newer token. */
  readonly lasting: readonly SecretHandle[]
  /** What it shows in TLS (RFC 8705); undefined for other methods. Undefined inside: there is no usable pair. */
  readonly certificate: (() => ClientCertificate | undefined) | undefined
}
