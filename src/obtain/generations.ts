import { hashKey, type CacheScope, type Generation } from '../cache/index.ts'
import type { SecretHandle } from '../core/index.ts'
import type { ObtainDeps } from './deps.ts'

/**
 * The active version of a config and its secrets; the same object until a secret changes. Credentials of other
 * versions are invalidated, immediately if a reload follows the change of a secret before the next request.
 */
export function createGenerations(
  scope: CacheScope,
  configHash: string,
  secrets: readonly SecretHandle[],
  cache: Pick<ObtainDeps['cache'], 'retireSecrets' | 'retireSecretsHere'>,
): () => Generation {
  const generationNow = (): Generation => ({
    configHash,
    // By content, not by count, so that it is equal for all routes and after a reload.
    secrets: hashKey(secrets.map((secret) => (secret.version === 0 ? '' : secret.current().digest()))),
  })
  let versions = secrets.map((secret) => secret.version)
  let generation = generationNow()
  if (secrets.length > 0) cache.retireSecretsHere(scope.config, generation)

  return () => {
    if (secrets.every((secret, index) => secret.version === versions[index])) return generation
    versions = secrets.map((secret) => secret.version)
    generation = generationNow()
    cache.retireSecrets(scope.config, generation)
    return generation
  }
}
