import type { EpochMs } from './time.ts'
import type { Caller } from './caller.ts'
import type { Credential } from './credential.ts'
import type { UpstreamToken } from './ports.ts'

/**
 * Why a caller has no usable connection: never connected (or disconnected), ended by the provider (a refused refresh, a
 * rejected credential), or without a scope that the backend requires.
 */
export type ConnectionProblem = 'missing' | 'ended' | 'insufficient_scope'

/** The connection that a request needs; part of a `not_connected` failure. */
export interface ConnectionNeed {
  /** Name in `connections.providers`. */
  readonly provider: string
  readonly problem: ConnectionProblem
  /** Scopes to request beside the configured ones, for `insufficient_scope`. */
  readonly scopes?: readonly string[] | undefined
}

/** The credentials of connected accounts (connections.md §4). */
export interface ConnectedAccounts {
  /**
   * A valid token of the caller's connection, refreshed with less than 60 s left; for providers of type `secret` the
   * key, which does not expire. Synchronous if cached. Throws `not_connected`, `identity_provider_unavailable` and
   * `store_unavailable`.
   */
  current(caller: Caller, provider: string, kind: 'access_token' | 'id_token'): UpstreamToken | Promise<UpstreamToken>
  /**
   * Reports that a backend rejected this token: refreshes it once. False when no other token is possible; the connection
   * is broken then and `current` throws `not_connected`.
   */
  reject(caller: Caller, provider: string, refused: UpstreamToken): Promise<boolean>
  /** Reports that a backend requires more scopes (403 `insufficient_scope`): throws `not_connected`. */
  widen(caller: Caller, provider: string, scopes: readonly string[]): Promise<never>
  /** Distinguishes connections in cache keys: changes whenever the caller connects again. Throws as `current`. */
  keyParts(caller: Caller, provider: string): readonly string[] | Promise<readonly string[]>
}

/** A link at which a person connects an account. */
export interface ConnectLink {
  readonly url: string
  readonly expiresAtMs: EpochMs
  /** Public id of this prompt, for `elicitationId`; not usable to connect. */
  readonly id: string
}

/** Creates the links that prompts contain, and reports when an account was connected (connections.md §2 and §3). */
export interface ConnectLinks {
  /**
   * The link for this caller: within a minute the same one. Throws `rate_limited` for more than ten per minute and
   * `store_unavailable`.
   */
  link(caller: Caller, route: string, need: ConnectionNeed): Promise<ConnectLink>
  /** Name of the provider to show in messages. */
  label(provider: string): string
  /** Whether the caller has a usable connection. Throws `store_unavailable`. */
  isConnected(caller: Caller, provider: string): Promise<boolean>
  /**
   * Calls `listener` within 2 s after the caller connected the account on any replica, with the id of the link that was
   * used. Returns the unsubscription.
   */
  onConnected(caller: Caller, provider: string, listener: (id: string) => void): () => void
  /** Credential for handshake, lists and pings of callers without a connection; undefined without `listing`. */
  listing(provider: string): Credential | undefined
  /** Seals a short text for `purpose`, to be opened by any replica; base64url. */
  seal(purpose: string, text: string): string
  /** Undefined for a text that was not sealed for this purpose. Throws `store_unavailable`. */
  open(purpose: string, sealed: string): Promise<string | undefined>
}
