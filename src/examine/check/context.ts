import type { Clock, Secret, Secrets } from '../../core/index.ts'
import type { EgressProxy } from '../../net/index.ts'
import type { ObtainDeps } from '../../obtain/index.ts'
import type { ResolvedProxy } from '../../load/index.ts'
import type { HeldAuthenticators } from '../../compose/proxy/index.ts'
import type { ClockNotes } from './clock.ts'
import type { CheckResult } from './result.ts'
import type { StoreState } from '../../storage/index.ts'

/** Remarks of the opened stores about themselves. */
export interface StoreNotes {
  /** Call it while they are open. */
  take(states: readonly StoreState[]): void
  lines(): readonly CheckResult[]
}

/** What all checks of one run have in common. */
export interface CheckContext {
  readonly config: ResolvedProxy
  readonly clock: Clock
  readonly secrets: Secrets
  /** For the sources of credentials. */
  readonly obtain: ObtainDeps
  readonly authenticators: Pick<HeldAuthenticators, 'get'>
  readonly egressProxy: EgressProxy | undefined
  /** The token of `--token-file`. */
  readonly token: Secret | undefined
  /** The token of `--refresh-token-file`, and the upstream that issued it. */
  readonly refreshToken: { readonly upstream: string; readonly token: Secret } | undefined
  /** The one route was asked for, so that a token which is not for it is a failure. */
  readonly isOneRoute: boolean
  readonly times: ClockNotes
  readonly stores: StoreNotes
  /** What several routes share is found out once. */
  once<T>(key: string, make: () => Promise<T>): Promise<T>
}

/** Milliseconds for each step of a check that has no deadline of its own. */
export const STEP_MS = 5000

/** Remembers what was found out, by a key. */
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
