import { type Claims, type Clock, holderWithoutLogin, type InProcessIssuer } from '../core/index.ts'
import type { KeyRing } from '../signing/index.ts'
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
    // A token of ours that names neither a session nor what it came of without one never existed.
    isRevoked: (claims) =>
      !isWithoutLogin(claims) && (typeof claims.tsid !== 'string' || sessions.isEnded(claims.tsid)),
    async hasSession(claims) {
      // Nothing ended it: it lives an hour at most.
      if (isWithoutLogin(claims)) return true
      const { tsid, iat } = claims
      // What ended before is forgotten with a store in memory, and whoever writes another can take it away.
      if (typeof iat === 'number' && iat * 1000 > openedAtMs) return true
      return typeof tsid === 'string' && (await sessions.isKept(tsid))
    },
  }
}

const isWithoutLogin = (claims: Claims): boolean => holderWithoutLogin(claims) !== undefined
