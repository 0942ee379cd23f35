import { createSealedRecords, type Seal, type Store } from '../../storage/index.ts'

/**
 * Pending claims requests (step-up): the `claims` parameter for a user's next authorization request at a provider
 * (OpenID Connect Core §5.5).
 */
export interface ClaimsRequests {
  /** Stores the request for ten minutes, replacing an earlier one. Throws `StoreError`. */
  note(provider: string, user: string, claims: string): Promise<void>
  /** Returns and deletes the request. Throws `StoreError`. */
  take(provider: string, user: string): Promise<string | undefined>
}

/** The login usually follows immediately; otherwise the service repeats its request. */
const KEPT_MS = 10 * 60_000

/** Claims requests in the store, keyed by provider and the provider's subject. */
export function createClaimsRequests(store: Store, seal: Seal): ClaimsRequests {
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
