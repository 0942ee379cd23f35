import type { Claims, UpstreamTokens } from '../../core/index.ts'
import type { UpstreamLogin } from '../../upstreams/index.ts'

/** What a login is, when its first leg starts to be kept. */
export interface NewUpstreamSession {
  /** The name of the session in our tokens: at least 128 random bits. */
  readonly tsid: string
  /** `sub` of our tokens (authserver.md §4.6). */
  readonly subject: string
  readonly clientId: string
  /** Name of the upstream that says who the user is. */
  readonly firstProvider: string
  /** The resource that the login was for. */
  readonly resource: string
  /** Nothing of the session outlives this; milliseconds since the epoch. */
  readonly endsAtMs: number
}

/**
 * The upstream tokens behind our own (authserver.md §6). As `UpstreamTokens` it answers for a caller whose token we issued:
 * the session's subject and client must be those of the caller's token, else `no_session`. Methods that need the store
 * throw `store_unavailable` with a Retry-After while it does not answer.
 */
export interface UpstreamSessions extends UpstreamTokens {
  /** Throws `internal_error` for a `tsid` that is there already. */
  create(session: NewUpstreamSession): Promise<void>
  /** Keeps what a leg brought, in the place of what this provider gave before. Throws `no_session` when there is no session. */
  addLeg(tsid: string, provider: string, login: UpstreamLogin): Promise<void>
  /**
   * Claims for a new access token when our refresh token is used: of the first upstream, which is asked each time
   * (authserver.md §4.7), so that lost groups, locked users and ended sessions show; those from before where it gave no refresh
   * token. Undefined when the session is over, here or at the upstream (then there is no new access token). While the upstream
   * can't be asked those from before, until its tokens are due; then throws `identity_provider_unavailable`. Throws `no_session`
   * where the upstream refuses in a way that may be a mistake (`mayHeal`): the session is kept.
   */
  renewClaims(tsid: string): Promise<{ readonly claims: Claims } | undefined>
  /**
   * Ends it: its tokens are deleted, and all replicas refuse its `tsid` within 2 s. The upstreams are told after that, where they
   * take it (RFC 7009). Ending twice, or what never was, is fine.
   */
  end(tsid: string): Promise<void>
  /**
   * True when the session was ended, as far as this replica knows; never waits. Throws `store_unavailable` while the list
   * of ended sessions is not known.
   */
  isEnded(tsid: string): boolean
  /** Whether there is such a session in the store. Throws `store_unavailable`. */
  isKept(tsid: string): Promise<boolean>
  /** Resolves when the store was asked for that list for the first time, whatever it answered; worth waiting for at start. */
  opened(): Promise<void>
  close(): Promise<void>
}
