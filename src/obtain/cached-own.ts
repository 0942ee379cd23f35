import { hashKey, type CacheSlot, type Generation } from '../cache/index.ts'
import type { Credential, CredentialLookup } from '../core/index.ts'
import type { CachedConfig } from './cached.ts'
import type { ObtainDeps } from './deps.ts'
import { createGenerations } from './generations.ts'
import type { OwnSource, Source } from './source.ts'

/** A source that gives everybody the same. */
export interface CachedOwnSource extends Source {
  obtain(): Credential | Promise<Credential>
  lookup(): CredentialLookup
  /** Another one, though this one lives; it stays where none is to be had. Rejects with what `fetch` throws. */
  renew(): Promise<Credential>
}

/**
 * Puts the one cache (decisions §4) before a source of the proxy's own credential: one entry per config, whoever calls, which no
 * issuer and no subject owns. `obtain` throws what `fetch` throws.
 */
export function createCachedOwnSource(
  config: CachedConfig,
  source: OwnSource,
  { cache }: Pick<ObtainDeps, 'cache'>,
): CachedOwnSource {
  const scope = cache.scope(`${config.namespace}/${config.name}`, config.type)
  source.onRecovered?.(() => cache.endPauses(scope.config))
  const generationNow = createGenerations(scope, config.configHash, source.secrets ?? [], cache)

  const slotFor = (generation: Generation): CacheSlot<Credential> => ({
    scope,
    generation,
    // A caller's key has issuer and identity behind these.
    key: hashKey([scope.config, generation.configHash, generation.secrets]),
    issuer: '',
    subject: '',
    ownerId: '',
    role: undefined,
    notAfterMs: undefined,
    deadlineMs: source.deadlineMs,
    fetch: async (endsAtMs) => {
      const { credential, expiresAtMs } = await source.fetch(endsAtMs)
      return { value: credential, expiresAtMs }
    },
  })
  let slot = slotFor(generationNow())
  const current = (): CacheSlot<Credential> => {
    const generation = generationNow()
    return slot.generation === generation ? slot : (slot = slotFor(generation))
  }

  return {
    obtain: () => cache.get(current()),
    lookup: () => cache.lookup(current()),
    renew: async () => cache.renew(current()),
    reject: (_caller, credential) => cache.reject(current(), credential),
    isFreshAfterRejection: () => cache.isFreshAfterRejection(current()),
    close: async () => source.close?.(),
  }
}
