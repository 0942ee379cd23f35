import type { Clock, Secret, Secrets } from '../../core/index.ts'
import type { EgressProxy } from '../../net/index.ts'
import type { ObtainDeps } from '../../obtain/index.ts'
import type { ResolvedProxy } from '../../load/index.ts'
import type { HeldAuthenticators } from '../../compose/proxy/index.ts'
import type { ClockNotes } from './clock.ts'
import type { CheckResult } from './result.ts'
import type { StoreState } from '../../storage/index.ts'

/** Notes of opened stores about themselves. */
export interface StoreNotes {
  /** Call it while the stores are open. */
  take(states: readonly StoreState[]): void
  lines(): readonly CheckResult[]
}

/** State shared by all tests of one run. */
export interface CheckContext {
  readonly config: ResolvedProxy
  readonly clock: Clock
  readonly secrets: Secrets
  /** Dependencies of credential sources. */
  readonly obtain: ObtainDeps
  readonly authenticators: Pick<HeldAuthenticators, 'get'>
  readonly egressProxy: EgressProxy | undefined
  /** The token of `--token-file`. */
  readonly token: Secret | undefined
  /** The token of `--refresh-token-file`, and its upstream. */
  readonly refreshToken: { readonly upstream: string; readonly token: Secret } | undefined
  /** `--route` was given, so a token for a different route is a failure. */
  readonly isOneRoute: boolean
  readonly times: ClockNotes
  readonly stores: StoreNotes
  /** Runs a shared test once per key. */
  once<T>(key: string, make: () => Promise<T>): Promise<T>
}

/** Milliseconds per step without a deadline of its own. */
export const STEP_MS = 5000

/** Caches results by key. */
export function createOnce(): CheckContext['once'] {
  const known = new Map<string, Promise<unknown>>()
  return <T>(key: string, make: () => Promise<T>): Promise<T> => {
    const found = known.get(key) as Promise<T> | undefined
    if (found !== undefined) return found
    const made = make()
    known.set(key, made)
    return made
  }
}
