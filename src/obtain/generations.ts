import { hashKey, type CacheScope, type Generation } from '../cache/index.ts'
import type { SecretHandle } from '../core/index.ts'
import type { ObtainDeps } from './deps.ts'

/**
 * Which version of a config and of its secrets is in force; the same object until a secret changes. What was fetched with others
 * is retired, at once where a reload came between the change of a secret and the first request that would have seen it.
 */
export function createGenerations(
  scope: CacheScope,
  configHash: string,
  secrets: readonly SecretHandle[],
  cache: Pick<ObtainDeps['cache'], 'retireSecrets' | 'retireSecretsHere'>,
): () => Generation {
  const generationNow = (): Generation => ({
    configHash,
    // By content and not by count, so that it means the same to every route and after a reload.
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
