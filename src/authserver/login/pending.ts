import type { EpochMs } from '../../core/index.ts'
import { createSealedRecords, type Seal, type Store } from '../../storage/index.ts'
import type { StoredLogin } from '../tokens/stored-login.ts'
import type { Flow } from './browser.ts'
import type { LoginRequest } from './login-request.ts'

/** The user's consent: given in this login, or earlier by the subject with this short hash. */
export type Consent = 'given' | { readonly rememberedFor: string }

/** A login in progress. */
export interface PendingLogin {
  readonly request: LoginRequest
  readonly consent: Consent
  readonly flowId: string
  /** Expiry of the login. */
  readonly endsAtMs: EpochMs
  /** Results of the upstreams visited so far. */
  readonly logins: readonly StoredLogin[]
}

/** A login while the browser is at an upstream. */
export interface PendingLeg extends PendingLogin {
  /** Position in the chain of the resource. */
  readonly index: number
  readonly provider: string
}

/**
 * Pending logins, those at connection providers included, keyed by a hash of the upstream's or page's token (`state`)
 * and the secret of the browser's cookie. Both are needed to find or consume a login, and exactly one of concurrent
 * requests gets it.
 */
export interface PendingLogins {
  put(kind: string, token: string, flow: Flow, login: object, ttlMs: number): Promise<void>
  /** The record that was put under the same kind, token and flow. */
  take<T extends object>(kind: string, token: string, flow: Flow): Promise<T | undefined>
}

export function createPendingLogins(store: Store, seal: Seal): PendingLogins {
  const records = createSealedRecords(seal)
  const keyOf = (lookup: string): string => `login:${lookup}`
  const secretOf = (token: string, flow: Flow): string => `${flow.id}.${flow.secret}.${token}`

  return {
    async put(kind, token, flow, login, ttlMs) {
      const key = keyOf(seal.lookupKey(kind, secretOf(token, flow)))
      await store.put(key, records.write(key, login), Math.ceil(ttlMs))
    },
    async take<T extends object>(kind: string, token: string, flow: Flow) {
      for (const key of seal.lookupKeys(kind, secretOf(token, flow)).map(keyOf)) {
        const record = await records.read<T>(key, await store.take(key))
        if (record !== undefined) return record
      }
      return undefined
    },
  }
}
