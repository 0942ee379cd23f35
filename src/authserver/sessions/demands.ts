import { createSealedRecords, type Seal, type Store } from '../../storage/index.ts'

/**
 * What services behind us want of the next login of a user at a provider: the parameter `claims` of its authorization request
 * (OpenID Connect Core §5.5).
 */
export interface Demands {
  /** Kept for ten minutes, in the place of an earlier one. Throws `StoreError`. */
  note(provider: string, user: string, claims: string): Promise<void>
  /** Gives it once. Throws `StoreError`. */
  take(provider: string, user: string): Promise<string | undefined>
}

/** A login follows at once, or it is wanted anew. */
const KEPT_MS = 10 * 60_000

/** Demands in the store, found by provider and the provider's own name for the user. */
export function createDemands(store: Store, seal: Seal): Demands {
  const records = createSealedRecords(seal)
  const nameOf = (provider: string, user: string): string => JSON.stringify([provider, user])
  const keyOf = (lookup: string): string => `demand:${lookup}`
  return {
    async note(provider, user, claims) {
      const key = keyOf(seal.lookupKey('demand', nameOf(provider, user)))
      await store.put(key, records.write(key, { claims }), KEPT_MS)
    },
    async take(provider, user) {
      for (const key of seal.lookupKeys('demand', nameOf(provider, user)).map(keyOf)) {
        const record = await records.read<{ claims: string }>(key, await store.take(key))
        if (record !== undefined) return record.claims
      }
      return undefined
    },
  }
}
