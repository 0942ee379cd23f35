import { createSealingKeys, type SealingKeys } from '../../storage/index.ts'
import { makeSigningKey, type SigningKey } from './signing-key.ts'

/** Keys for servers that have none configured: made when first needed, the same for as long as the process lives. */
export interface EphemeralKeys {
  signing(): SigningKey
  sealing(): SealingKeys
}

/** One per server and process: what was issued has to survive a reload of the configuration. */
export function createEphemeralKeys(): EphemeralKeys {
  let signing: SigningKey | undefined
  let sealing: SealingKeys | undefined
  return {
    signing: () => (signing ??= makeSigningKey()),
    sealing: () => (sealing ??= createSealingKeys([])),
  }
}
