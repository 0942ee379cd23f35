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
  /** It stands in the configuration as it is: nobody has to be kept from seeing it. Default false. */
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
  /** Derived signing keys live and die with the credential; the signer owns what is in here. */
  readonly signing: { day: string; key: Uint8Array | undefined }
}

/** What an outgoing request is armed with. Appliers are keyed by `kind`. */
export type Credential = NoCredential | HeaderCredential | AwsCredential

export type CredentialKind = Credential['kind']

export const NO_CREDENTIAL: NoCredential = Object.freeze({ kind: 'none' })
