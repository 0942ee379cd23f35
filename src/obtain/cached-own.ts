import { hashKey, type CacheSlot, type Generation } from '../cache/index.ts'
import type { Credential, CredentialLookup } from '../core/index.ts'
import type { CachedConfig } from './cached.ts'
import type { ObtainDeps } from './deps.ts'
import { createGenerations } from './generations.ts'
import { createRejections, nameOfCaller } from './rejections.ts'
import type { OwnSource, Source } from './source.ts'

/** A source with the same credential for all callers. */
export interface CachedOwnSource extends Source {
  obtain(): Credential | Promise<Credential>
  lookup(): CredentialLookup
  /**
   * A replacement for the credential that `caller` was rejected with: the current one, or a new one if
   * `createRejections` allows it. Callers get the rejected one until then. Undefined without one. Rejects with the
   * errors of `obtain`.
   */
  another(caller: string, refused: Credential): Promise<Credential | undefined>
}

/** Some services return the same token again. */
const isSame = (one: Credential, other: Credential): boolean =>
  one === other || (one.kind === 'header' && other.kind === 'header' && one.value.equals(other.value))

/**
 * Caches a source of the proxy's own credential (decisions §4): one entry per config, for all callers, without issuer
 * and subject. `obtain` throws the errors of `fetch`.
 */
export function createCachedOwnSource(
  config: CachedConfig,
  source: OwnSource,
  { cache, clock }: Pick<ObtainDeps, 'cache' | 'clock'>,
): CachedOwnSource {
  const scope = cache.scope(`${config.namespace}/${config.name}`, config.type)
  source.onRecovered?.(() => cache.endPauses(scope.config))
  const generationNow = createGenerations(scope, config.configHash, source.secrets ?? [], cache)

  const slotFor = (generation: Generation): CacheSlot<Credential> => ({
    scope,
    generation,
    // A caller's key has issuer and identity after these.
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

  const rejections = createRejections(clock)
  let renewal: Promise<Credential | undefined> | undefined
  const renew = async (): Promise<Credential | undefined> => {
    try {
      const renewed = await cache.renew(current())
      rejections.renewed()
      return renewed
    } catch {
      // The cache counts the failure, and the source has logged it.
      return undefined
    }
  }
  const another = async (caller: string, refused: Credential): Promise<Credential | undefined> => {
    const now = await cache.get(current())
    if (!isSame(now, refused)) return now
    const found = cache.lookup(current())
    if (found.from === 'cache' && rejections.mayRenew(found.obtainedAtMs, caller))
      renewal ??= renew().finally(() => (renewal = undefined))
    const next = await renewal
    return next === undefined || isSame(next, refused) ? undefined : next
  }

  return {
    obtain: () => cache.get(current()),
    lookup: () => cache.lookup(current()),
    another,
    reject: async (caller, credential) => (await another(nameOfCaller(caller), credential)) !== undefined,
    close: async () => source.close?.(),
  }
}
