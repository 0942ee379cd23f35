import { hash } from 'node:crypto'
import { createTtlLru } from '../cache/index.ts'
import { type AuthenticatedCaller, type Clock, type OnBehalf, onBehalfOf } from '../core/index.ts'
import { networkOf } from '../http/index.ts'

/** Who asks an introspection endpoint about a token, before the answer is there. */
export interface Familiar {
  /** The caller whom the token stood for lately; else the network of the `peer` that it came from, a stranger. */
  asking(token: string, peer: string | undefined): OnBehalf
  /** The token was found good. */
  note(caller: AuthenticatedCaller): void
  /** The token was found bad. */
  forget(by: OnBehalf): void
}

/** A result is kept for a minute; whoever comes back within so many more is no stranger. */
const KEPT_MS = 10 * 60_000
/** As many as results are kept. */
const MOST_TOKENS = 50_000

/**
 * Remembers whose tokens were good, after their verdicts have ended: these are asked about before tokens never seen, and
 * count for their callers instead of for the peer, behind which many may stand (decisions §2.10). Holds digests only.
 */
export function createFamiliar(clock: Clock): Familiar {
  const callers = createTtlLru<string>({ clock, maxEntries: MOST_TOKENS })
  return {
    asking(text, peer) {
      const token = hash('sha256', text, 'base64url')
      const caller = callers.get(token)
      if (caller !== undefined) return { caller, token }
      const stranger = peer === undefined ? token : networkOf(peer)
      return { caller: stranger, token, isUnauthenticated: true }
    },
    note(caller) {
      const known = hash('sha256', onBehalfOf(caller).caller, 'base64url')
      callers.set(caller.tokenDigest, known, clock.now() + KEPT_MS)
    },
    forget: ({ token }) => void callers.delete(token),
  }
}
