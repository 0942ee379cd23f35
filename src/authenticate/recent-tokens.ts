import { hash } from 'node:crypto'
import { createTtlLru } from '../cache/index.ts'
import { type AuthenticatedCaller, type Clock, type OnBehalf, onBehalfOf } from '../core/index.ts'
import { networkOf } from '../http/index.ts'

/** Attributes introspection requests, before the response identifies the caller. */
export interface RecentTokens {
  /** The caller of this token if it was recently valid; else the network of `peer`, unauthenticated. */
  attribution(token: string, peer: string | undefined): OnBehalf
  /** The token was found valid. */
  note(caller: AuthenticatedCaller): void
  /** The token was found invalid. */
  forget(by: OnBehalf): void
}

/** Results are cached for a minute; a token seen within this longer time still counts for its caller. */
const KEPT_MS = 10 * 60_000
/** As many as cached results. */
const MOST_TOKENS = 50_000

/**
 * Remembers whose tokens were good, after their verdicts have ended: these are asked about before tokens never seen, and
 * count for their callers instead of for the peer, behind which many may stand (decisions §2.10). Holds digests only.
 */
export function createRecentTokens(clock: Clock): RecentTokens {
  const callers = createTtlLru<string>({ clock, maxEntries: MOST_TOKENS })
  return {
    attribution(text, peer) {
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
