import { type Hold, RefCountedPool } from '../../../core/index.ts'
import type { Ambient } from './ambient.ts'
import type { AwsIdentity, KeysOnly } from './keys.ts'

/** An identity with its STS client. */
export interface OpenIdentity extends AwsIdentity {
  /** Its source, for `check`. */
  readonly ambient: Pick<Ambient, 'answered'>
  /** The identity before the first hop, if any. */
  readonly from: OpenIdentity | undefined
  /** The ARN of the holder of these keys (`GetCallerIdentity`). Throws STS failures. */
  readonly who: (keys: KeysOnly) => Promise<string>
  close(): Promise<void>
}

/** Identities in use, shared by all configs with equal settings, so that valid keys survive a reload. */
export type Identities = Hold<OpenIdentity>
export const createIdentityPool = (): RefCountedPool<OpenIdentity> => new RefCountedPool((identity) => identity.close())
