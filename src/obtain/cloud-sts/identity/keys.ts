import type { AwsCredential, Secret } from '../../../core/index.ts'
import type { CloudSts } from '../../../resources/index.ts'

/** What AWS knows somebody by. */
export interface AwsKeys {
  readonly accessKeyId: string
  readonly secretAccessKey: Secret
  /** Absent for the keys of a user, which have no end. */
  readonly sessionToken: Secret | undefined
  /** Milliseconds since the epoch; Infinity for what has no end. */
  readonly expiresAtMs: number
}

/** Keys, whatever their end. */
export type KeysOnly = Omit<AwsKeys, 'expiresAtMs'>

/** Keys as a request to a backend is signed with them. */
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

/** An identity of the process's own: its keys, kept fresh. */
export interface AwsIdentity {
  /** At once where they are at hand. Throws `aws_identity_unavailable` and `config_error`. */
  current(): AwsKeys | Promise<AwsKeys>
  /**
   * AWS refused these keys: fetches others where `createRejections` allows it, and says whether there are others now. `caller`: whose
   * request was refused; undefined where STS says so.
   */
  reject(refused: AwsKeys, caller: string | undefined): Promise<boolean>
}

/** Keys as a credential source gives them, in the words of the AWS SDKs. */
export interface FoundKeys {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken?: string
  readonly expiration?: Date
}

/** A credential source that gives no keys. The message names files, variables, profiles and fields, and no secret. */
export class CredentialSourceError extends Error {
  override readonly name = 'CredentialSourceError'
  /** The chain ends here: the source is configured, and the next one may be another identity. */
  readonly isFinal: boolean

  constructor(
    message: string,
    { isFinal = false, cause }: { readonly isFinal?: boolean; readonly cause?: unknown } = {},
  ) {
    super(message, { cause })
    this.isFinal = isFinal
  }
}
