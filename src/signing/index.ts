export { createEphemeralKeys, makeEphemeralMaterial, type EphemeralKeys, type EphemeralMaterial } from './ephemeral.ts'
export { createKeyRing, type KeyRing } from './key-ring.ts'
export { createSealingSecrets } from './sealing-secrets.ts'
export { readSigningKey, type SigningKey } from './signing-key.ts'
