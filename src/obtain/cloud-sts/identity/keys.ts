import type { AwsCredential, EpochMs, Secret } from '../../../core/index.ts'
import type { CloudSts } from '../../../resources/index.ts'

/** AWS access keys with expiry. */
export interface AwsKeys {
  readonly accessKeyId: string
  readonly secretAccessKey: Secret
  /** Absent for long-term keys of a user. */
  readonly sessionToken: Secret | undefined
  /** Infinity without expiry. */
  readonly expiresAtMs: EpochMs
}

/** Keys without their expiry. */
export type KeysOnly = Omit<AwsKeys, 'expiresAtMs'>

/** Converts keys to a request-signing credential. */
export const credentialWith = (
  { accessKeyId, secretAccessKey, sessionToken }: KeysOnly,
  { region, service }: Pick<CloudSts, 'region' | 'service'>,
): AwsCredential => ({
  kind: 'aws',
  accessKeyId,
  secretAccessKey,
  sessionToken,
  region,
  service,
  signing: { day: '', key: undefined },
})

/** An identity of the process, kept fresh. */
export interface AwsIdentity {
  /** Synchronous with cached keys. Throws `aws_identity_unavailable` and `config_error`. */
  current(): AwsKeys | Promise<AwsKeys>
  /**
   * Reports that AWS rejected these keys: fetches others if `createRejections` allows it, and resolves to whether
   * there are others. `caller`: whose request was rejected; undefined for STS itself.
   */
  reject(refused: AwsKeys, caller: string | undefined): Promise<boolean>
}

/** Keys from a credential source, with the field names of the AWS SDKs. */
export interface FoundKeys {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken?: string
  readonly expiration?: Date
}

/** A credential source failed. The message names files, variables, profiles and fields, but no secret. */
export class CredentialSourceError extends Error {
  override readonly name = 'CredentialSourceError'
  /** Stops the chain: the source is configured, and the next one may be a different identity. */
  readonly isFinal: boolean

  constructor(
    message: string,
    { isFinal = false, cause }: { readonly isFinal?: boolean; readonly cause?: unknown } = {},
  ) {
    super(message, { cause })
    this.isFinal = isFinal
  }
}
