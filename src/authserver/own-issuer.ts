import type { Clock, InProcessIssuer } from '../core/index.ts'
import type { KeyRing } from './keys/key-ring.ts'
import type { UpstreamSessions } from './sessions/session.ts'

/** What routes of this process know of a server: its keys, and which of its sessions there are. */
export function createOwnIssuer(
  issuer: string,
  { ring, sessions, clock }: { readonly ring: KeyRing; readonly sessions: UpstreamSessions; readonly clock: Clock },
): InProcessIssuer {
  const openedAtMs = clock.now()
  return {
    issuer,
    keys: () => ring.keys(),
    // A token of ours without a session never existed.
    isRevoked: ({ tsid }) => typeof tsid !== 'string' || sessions.isEnded(tsid),
    async hasSession({ tsid, iat }) {
      // What ended before is forgotten with a store in memory, and whoever writes another can take it away.
      if (typeof iat === 'number' && iat * 1000 > openedAtMs) return true
      return typeof tsid === 'string' && (await sessions.isKept(tsid))
    },
  }
}
