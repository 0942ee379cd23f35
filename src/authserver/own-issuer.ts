import { type Claims, type Clock, holderWithoutLogin, type InProcessIssuer } from '../core/index.ts'
import type { KeyRing } from '../signing/index.ts'
import type { UpstreamSessions } from './sessions/session.ts'

/** The server as an in-process issuer: its keys and session state. */
export function createOwnIssuer(
  issuer: string,
  { ring, sessions, clock }: { readonly ring: KeyRing; readonly sessions: UpstreamSessions; readonly clock: Clock },
): InProcessIssuer {
  const openedAtMs = clock.now()
  return {
    issuer,
    keys: () => ring.keys(),
    // A token that names neither a session nor a grant without login is invalid.
    isRevoked: (claims) =>
      !isWithoutLogin(claims) && (typeof claims.tsid !== 'string' || sessions.isEnded(claims.tsid)),
    async hasSession(claims) {
      // It can't be revoked; it lives an hour at most.
      if (isWithoutLogin(claims)) return true
      const { tsid, iat } = claims
      // An in-memory store forgets earlier sessions, and a writer of another store can delete them.
      if (typeof iat === 'number' && iat * 1000 > openedAtMs) return true
      return typeof tsid === 'string' && (await sessions.isKept(tsid))
    },
  }
}

const isWithoutLogin = (claims: Claims): boolean => holderWithoutLogin(claims) !== undefined
