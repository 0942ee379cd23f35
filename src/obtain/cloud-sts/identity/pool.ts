import { type Hold, RefCountedPool } from '../../../core/index.ts'
import type { Ambient } from './ambient.ts'
import type { AwsIdentity, KeysOnly } from './keys.ts'

/** An identity with its way to STS. */
export interface OpenIdentity extends AwsIdentity {
  /** Where it comes from, for `check`. */
  readonly ambient: Pick<Ambient, 'answered'>
  /** The identity before the first hop, where there is one. */
  readonly from: OpenIdentity | undefined
  /** Whom AWS takes the holder of these keys for (`GetCallerIdentity`): an ARN. Throws what STS says. */
  readonly who: (keys: KeysOnly) => Promise<string>
  close(): Promise<void>
}

/** Identities that are in use, each once for all configs that have the same: what is good outlasts a reload. */
export type Identities = Hold<OpenIdentity>
export const createIdentityPool = (): RefCountedPool<OpenIdentity> => new RefCountedPool((identity) => identity.close())
