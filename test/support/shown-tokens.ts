import { type AuthenticatedCaller, type Caller, Secret } from '../../src/core/index.ts'
import type { Source } from '../../src/obtain/index.ts'

const shown = new WeakMap<Caller, Secret>()

/** The same caller, whose requests come with this token from now on. */
export function showing(caller: AuthenticatedCaller, token: Secret): AuthenticatedCaller {
  shown.set(caller, token)
  return caller
}

/** The token of a caller's requests; without a configured one, a token unique to the caller. */
export const tokenOf = (caller: Caller): Secret =>
  shown.get(caller) ?? new Secret(caller.kind === 'anonymous' ? 'nobody' : `token-${caller.tokenDigest}`)

/** A source that is asked on behalf of callers, each with its own token. */
export const asked = (source: Source): Source & { obtain(caller: Caller): ReturnType<Source['obtain']> } => ({
  ...source,
  obtain: (caller: Caller) => source.obtain(caller, () => tokenOf(caller)),
})
