import { type Hold, RefCountedPool } from '../../../core/index.ts'
import type { Ambient } from './ambient.ts'
import type { AwsIdentity } from './keys.ts'

/** An identity with its way to STS. */
export interface OpenIdentity extends AwsIdentity {
  /** Where it comes from, for `check`. */
  readonly ambient: Pick<Ambient, 'answered'>
  /** The role of the first hop, where there is one. */
  readonly hop: string | undefined
  close(): Promise<void>
}

/** Identities that are in use, each once for all configs that have the same: what is good outlasts a reload. */
export type Identities = Hold<OpenIdentity>
export const createIdentityPool = (): RefCountedPool<OpenIdentity> => new RefCountedPool((identity) => identity.close())
