import type { KeyObject } from 'node:crypto'
import type { EpochMs } from './time.ts'
import type { AuthenticatedCaller, Claims } from './caller.ts'
import type { Secret } from './secret.ts'

/** A period, in milliseconds of one clock, during which an operation is skipped. */
export interface Pause {
  readonly sinceMs: number
  readonly untilMs: number
}

/**
 * Whether a pause is still active. A clock set back to before its start ends the pause, else it would last until the
 * clock caught up.
 */
export const isDuring = <P extends Pause>(pause: P | undefined, nowMs: number): pause is P =>
  pause !== undefined && pause.sinceMs <= nowMs && nowMs < pause.untilMs

/** Structured log. Fields never hold tokens, secrets, claims, or messages of foreign errors. */
export interface Log {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

/**
 * Declare a counter, gauge or histogram once. `with(...)` returns the child for label values; keep it on hot paths.
 */
export interface Metrics {
  counter(
    name: string,
    help: string,
    labelNames?: readonly string[],
  ): { with(...labels: string[]): { add(by?: number): void } }
  /** `across`: how the values of several workers combine; default their sum. */
  gauge(
    name: string,
    help: string,
    labelNames?: readonly string[],
    across?: 'sum' | 'min' | 'max',
  ): { with(...labels: string[]): { set(value: number): void; add(by: number): void } }
  histogram(
    name: string,
    help: string,
    labelNames: readonly string[],
    buckets: readonly number[],
  ): { with(...labels: string[]): { observe(value: number): void } }
}

/** One secret by reference; its provider keeps it current. */
export interface SecretHandle {
  /** `<name>/<key>`, for messages. */
  readonly label: string
  /** The current value. Throws `secret_unavailable` while it was never readable. */
  current(): Secret
  /** Incremented on each change of the value; part of the staleness check of derived values. */
  readonly version: number
  /** Rereads the source now; resolves to true when the value changed. */
  refresh(): Promise<boolean>
}

export type SecretForm = 'text' | 'bytes'

/** Secrets by reference (`SecretRef` of the specification). */
export interface Secrets {
  /**
   * A secret is text, unless `form` is `bytes`: then invalid UTF-8 is accepted, for generated keys (`openssl rand
   * 32`). Throws `config_error` for an invalid reference.
   */
  handle(ref: { readonly name: string; readonly key: string }, form?: SecretForm): SecretHandle
}

/** A valid token of an upstream provider. */
export interface UpstreamToken {
  readonly token: Secret
  /** Usable without another lookup until then, as long as the session lasts. */
  readonly freshUntilMs: EpochMs
  /** Absent when the provider did not say: valid until a backend rejects it. */
  readonly expiresAtMs: EpochMs | undefined
}

/** The upstream tokens of a caller's session at the embedded authorization server (authserver.md §6). */
export interface UpstreamTokens {
  /**
   * A valid token of `provider`, refreshed with less than 60 s left. Throws `no_session` when there is none,
   * `identity_provider_unavailable` or `store_unavailable` when it is temporarily unavailable.
   */
  current(caller: AuthenticatedCaller, provider: string, kind: 'access_token' | 'id_token'): Promise<UpstreamToken>
  /**
   * Reports that a backend rejected this token: refreshes it once. False when no other token is possible and the
   * caller must log in again.
   */
  reject(caller: AuthenticatedCaller, provider: string, refused: UpstreamToken): Promise<boolean>
  /**
   * Step-up: a service requires more of the login at `provider`. Ends the session, so that the caller logs in again;
   * that login requests `claims` (a JSON object, OpenID Connect Core §5.5). Throws `no_session`, `store_unavailable`.
   */
  demand(caller: AuthenticatedCaller, provider: string, claims: string): Promise<void>
}

/** A public key of an in-process issuer, in the form `authenticate` needs. */
export interface IssuerKey {
  /** RFC 7638 thumbprint. */
  readonly kid: string
  readonly alg: string
  readonly publicKey: KeyObject
}

/** An issuer in this process: keys are passed directly, never fetched (authserver.md §2.6). */
export interface InProcessIssuer {
  /** Exactly the `iss` of its tokens. */
  readonly issuer: string
  /** All keys still valid for verification, the signing key first. */
  keys(): readonly IssuerKey[]
  /** True when this token's session was revoked. Called on each use of a verified token, so it is synchronous. */
  isRevoked(claims: Claims): boolean
  /**
   * False when the token predates this process and its session does not exist: revoked, or its state was lost. Called
   * once per verified token, after `isRevoked`. Rejects with `store_unavailable`.
   */
  hasSession(claims: Claims): Promise<boolean>
}
