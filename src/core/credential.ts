import type { Secret } from './secret.ts'

/** Nothing is added. */
export interface NoCredential {
  readonly kind: 'none'
}

/** One header is set to one value. */
export interface HeaderCredential {
  readonly kind: 'header'
  /** Lower-case header name. */
  readonly name: string
  /** The whole header value (for a bearer: `Bearer …`). */
  readonly value: Secret
  /** The value is plain text in the configuration, so it is not masked. Default false. */
  readonly isPlain?: true
}

/** AWS credentials with which the request is signed (SigV4): temporary ones, or those of a user, without session token. */
export interface AwsCredential {
  readonly kind: 'aws'
  readonly accessKeyId: string
  readonly secretAccessKey: Secret
  readonly sessionToken: Secret | undefined
  readonly region: string
  readonly service: string
  /** Derived signing keys share the credential's lifetime; the signer owns this field. */
  readonly signing: { day: string; key: Uint8Array | undefined }
}

/** The credential of an outgoing request. Appliers are keyed by `kind`. */
export type Credential = NoCredential | HeaderCredential | AwsCredential

export type CredentialKind = Credential['kind']

export const NO_CREDENTIAL: NoCredential = Object.freeze({ kind: 'none' })
