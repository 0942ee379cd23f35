import type { Claims, EpochMs, UpstreamTokens } from '../../core/index.ts'
import type { UpstreamLogin } from '../../upstreams/index.ts'

/** The data of a new login, before its first upstream is stored. */
export interface NewUpstreamSession {
  /** Session id in access tokens: at least 128 random bits. */
  readonly tsid: string
  /** `sub` of access tokens (authserver.md §4.6). */
  readonly subject: string
  readonly clientId: string
  /** The upstream that identifies the user. */
  readonly firstProvider: string
  /** The resource that the login was for. */
  readonly resource: string
  /** Expiry of the session. */
  readonly endsAtMs: EpochMs
}

/**
 * The upstream tokens behind a session (authserver.md §6). As `UpstreamTokens` it serves callers with this server's
 * tokens: subject and client of session and token must match, else `no_session`. Methods that need the store throw
 * `store_unavailable` with a Retry-After while it is down.
 */
export interface UpstreamSessions extends UpstreamTokens {
  /** Throws `internal_error` for an existing `tsid`. */
  create(session: NewUpstreamSession): Promise<void>
  /**
   * Stores the result of an upstream, replacing this provider's previous one. Throws `no_session` without a session.
   */
  addLeg(tsid: string, provider: string, login: UpstreamLogin): Promise<void>
  /**
   * Claims for a new access token at a refresh: from the first upstream, which is queried each time (authserver.md
   * §4.7), so that changed groups, locked users and ended sessions take effect. Earlier claims are used if it issued no
   * refresh token, or is unreachable and its tokens are not yet due; then it throws `identity_provider_unavailable`.
   * Undefined when the session has ended, here or at the upstream: no access token is issued. Throws `no_session` for a
   * rejection that may be temporary (`mayHeal`): the session is kept.
   */
  renewClaims(tsid: string): Promise<{ readonly claims: Claims } | undefined>
  /**
   * Ends the session: deletes its tokens, and all replicas reject its `tsid` within 2 s. Upstreams with RFC 7009 are
   * notified after that. Idempotent.
   */
  end(tsid: string): Promise<void>
  /**
   * True when this replica knows that the session ended; synchronous. Throws `store_unavailable` while the list of
   * revoked sessions is unknown.
   */
  isEnded(tsid: string): boolean
  /** Whether the store has this session. Throws `store_unavailable`. */
  isKept(tsid: string): Promise<boolean>
  /** Resolves after the first attempt to read that list; wait for it at start. */
  opened(): Promise<void>
  close(): Promise<void>
}
