import type { AuthenticatedCaller, UpstreamTokens } from '../../core/index.ts'
import type { ClaimsRequests } from './claims-requests.ts'
import type { SessionCounters } from './counters.ts'
import type { EndedSessions } from './ended.ts'
import { noSession } from './renewal.ts'
import type { CheckOwner, SessionTokens } from './token-use.ts'

export interface CallerTokensOptions {
  /** `iss` of the tokens whose callers have sessions. */
  readonly issuer: string
  readonly tokens: SessionTokens
  readonly ended: EndedSessions
  readonly claimsRequests: Pick<ClaimsRequests, 'note'>
  readonly end: (tsid: string) => Promise<void>
  readonly count: SessionCounters['session']
}

/** Upstream tokens for callers with this server's tokens: the claim `tsid` names the session. */
export function createCallerTokens(options: CallerTokensOptions): UpstreamTokens {
  const { issuer, tokens, ended, claimsRequests, count } = options

  const tsidOf = (caller: AuthenticatedCaller): string => {
    const { tsid } = caller.claims
    if (caller.issuer !== issuer || typeof tsid !== 'string') throw noSession('the caller did not log in here')
    if (ended.has(tsid)) throw noSession('the session was ended')
    return tsid
  }

  /**
   * Subject and client of session and caller's token must match, else the session belongs to another user
   * (authserver.md §6).
   */
  const checkFor =
    ({ subject, claims }: AuthenticatedCaller): CheckOwner =>
    (session) => {
      if (session.subject === subject && session.clientId === claims['client_id']) return
      count('mismatch')
      throw noSession('the session belongs to another user or client')
    }

  return {
    current: async (caller, provider, kind) => tokens.current(tsidOf(caller), provider, kind, checkFor(caller)),
    reject: async (caller, provider, refused) => tokens.reject(tsidOf(caller), provider, refused, checkFor(caller)),
    async demand(caller, provider, claims) {
      const tsid = tsidOf(caller)
      const held = await tokens.held(tsid, provider, checkFor(caller))
      await claimsRequests.note(provider, held.user, claims)
      await options.end(tsid)
    },
  }
}
