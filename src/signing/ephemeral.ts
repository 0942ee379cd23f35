import { randomBytes } from 'node:crypto'
import { Secret } from '../core/index.ts'
import type { SealingKeys } from '../storage/index.ts'
import { makeSigningKey, readSigningKey, type SigningKey } from './signing-key.ts'

/** Keys for servers that have none configured: made when first needed, the same for as long as the process lives. */
export interface EphemeralKeys {
  signing(): SigningKey
  sealing(): SealingKeys
}

/** Key material, for several processes with equal keys. */
export interface EphemeralMaterial {
  /** Private key in PEM. */
  readonly signing: Secret
  readonly sealing: Secret
}

/** New material: a P-256 key and 32 random bytes. */
export function makeEphemeralMaterial(): EphemeralMaterial {
  const pem = makeSigningKey().privateKey.export({ type: 'pkcs8', format: 'pem' })
  return { signing: new Secret(pem.toString()), sealing: new Secret(randomBytes(32).toString('base64url')) }
}

/**
 * One per server and process, so that issued tokens survive a reload of the configuration. Default: random material.
 */
export function createEphemeralKeys(material?: EphemeralMaterial): EphemeralKeys {
  let own = material
  let signing: SigningKey | undefined
  const made = (): EphemeralMaterial => (own ??= makeEphemeralMaterial())
  return {
    signing: () => (signing ??= readSigningKey(made().signing, 'made at start')),
    sealing: () => ({ current: () => [made().sealing], refresh: () => Promise.resolve(), isEphemeral: true }),
  }
}
