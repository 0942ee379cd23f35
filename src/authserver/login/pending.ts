import { createSealedRecords, type Seal, type Store } from '../../storage/index.ts'
import type { StoredLogin } from '../tokens/stored-login.ts'
import type { Flow } from './browser.ts'
import type { LoginRequest } from './login-request.ts'

/** How the user agreed: on the page of this login, or earlier, then as the subject whose short hash this is. */
export type Consent = 'given' | { readonly rememberedFor: string }

/** A login that is on its way through the upstreams. */
export interface PendingLogin {
  readonly request: LoginRequest
  readonly consent: Consent
  readonly flowId: string
  /** Nothing of it lives longer; milliseconds since the epoch. */
  readonly endsAtMs: number
  /** What the legs before brought. */
  readonly logins: readonly StoredLogin[]
}

/** … while the browser is at one of them. */
export interface PendingLeg extends PendingLogin {
  /** Position in the chain of the resource. */
  readonly index: number
  readonly provider: string
  readonly redirectUri: string
  readonly nonce: string
  readonly codeVerifier: string
  /** What the provider was asked for beyond a login, because a service behind us wants it. */
  readonly claims?: string | undefined
}

/**
 * Pending logins under a keyed hash of what came back from the upstream (`state`) or from our page, together with the secret of
 * the browser's cookie: who has only one of them finds nothing and spends nothing, and of many at once exactly one gets it.
 */
export interface PendingLogins {
  put(kind: 'leg' | 'confirm', token: string, flow: Flow, login: PendingLogin, ttlMs: number): Promise<void>
  take<T extends PendingLogin>(kind: 'leg' | 'confirm', token: string, flow: Flow): Promise<T | undefined>
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
    async take<T extends PendingLogin>(kind: 'leg' | 'confirm', token: string, flow: Flow) {
      for (const key of seal.lookupKeys(kind, secretOf(token, flow)).map(keyOf)) {
        const record = await records.read<T>(key, await store.take(key))
        if (record !== undefined) return record
      }
      return undefined
    },
  }
}
