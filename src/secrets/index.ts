export { labelOf, type SecretRef } from './secret-ref.ts'
export { openSecrets, type HeldSecrets, type OpenSecrets, type SecretsOptions } from './secrets.ts'
