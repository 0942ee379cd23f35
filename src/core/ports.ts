import type { KeyObject } from 'node:crypto'
import type { AuthenticatedCaller, Claims } from './caller.ts'
import type { Secret } from './secret.ts'

/** Wall clock. `now()` is in milliseconds since the epoch. Passed in everywhere so that tests own the time. */
export interface Clock {
  now(): number
}

/**
 * Time that only goes forward, in milliseconds from some moment: for deadlines, which a system clock that is set must not
 * move.
 */
export const STEADY_CLOCK: Clock = { now: () => performance.now() }

/** A time for which something is not done again, in milliseconds of one clock. */
export interface Pause {
  readonly sinceMs: number
  readonly untilMs: number
}

/**
 * Whether a pause lasts. A clock that was set back to before its beginning ends it: it would hold somebody up until the clock
 * has caught up.
 */
export const isDuring = <P extends Pause>(pause: P | undefined, nowMs: number): pause is P =>
  pause !== undefined && pause.sinceMs <= nowMs && nowMs < pause.untilMs

/** Structured log. Fields never hold tokens, secrets, claims or texts of foreign errors beyond their code. */
export interface Log {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

/** A counter, gauge or histogram is declared once; `with(...)` gives the child for label values, to be kept where it is hot. */
export interface Metrics {
  counter(
    name: string,
    help: string,
    labelNames?: readonly string[],
  ): { with(...labels: string[]): { add(by?: number): void } }
  /** `across`: what the values of several workers of one proxy come to; default their sum. */
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

/** One secret by reference, kept current by whoever watches its source. */
export interface SecretHandle {
  /** `<name>/<key>`, for messages. */
  readonly label: string
  /** The value now. Throws `secret_unavailable` while it has never been readable. */
  current(): Secret
  /** Goes up whenever the value changes; part of what decides whether a derived value is stale. */
  readonly version: number
  /** Looks at the source at once; true when the value differs from before. */
  refresh(): Promise<boolean>
}

export type SecretForm = 'text' | 'bytes'

/** Secrets by reference (`SecretRef` of the specification). */
export interface Secrets {
  /**
   * A secret is text, unless `form` is `bytes`: then what is not UTF-8 counts as well, for keys that nobody types
   * (`openssl rand 32`). Throws `config_error` for a reference that can't be one.
   */
  handle(ref: { readonly name: string; readonly key: string }, form?: SecretForm): SecretHandle
}

/** One live token of an upstream provider. */
export interface UpstreamToken {
  readonly token: Secret
  /** Until then it may be used without asking again, as long as the session lasts; milliseconds since the epoch. */
  readonly freshUntilMs: number
  /** Milliseconds since the epoch; absent when the provider did not say: good until a backend refuses it. */
  readonly expiresAtMs: number | undefined
}

/** The upstream tokens that the embedded authorization server holds for a caller's session (authserver.md §6). */
export interface UpstreamTokens {
  /**
   * A live token of `provider`, refreshed when it has under 60 s left. Throws `no_session` when there is none to be had,
   * `identity_provider_unavailable` or `store_unavailable` when it can't be had now.
   */
  current(caller: AuthenticatedCaller, provider: string, kind: 'access_token' | 'id_token'): Promise<UpstreamToken>
  /** A backend refused this token: refresh it once. False when there can be no other (then the caller logs in again). */
  reject(caller: AuthenticatedCaller, provider: string, refused: UpstreamToken): Promise<boolean>
  /**
   * A service wants more of the login at `provider` than there was: the session ends, so that the caller logs in again, and that
   * login asks the provider for `claims` (a JSON object, OpenID Connect Core §5.5). Throws `no_session`, `store_unavailable`.
   */
  demand(caller: AuthenticatedCaller, provider: string, claims: string): Promise<void>
}

/** A public key of an issuer that runs in this process, as `authenticate` needs it. */
export interface IssuerKey {
  /** RFC 7638 thumbprint. */
  readonly kid: string
  readonly alg: string
  readonly publicKey: KeyObject
}

/** An issuer in this very process: its keys are handed over, never fetched (authserver.md §2.6). */
export interface InProcessIssuer {
  /** As in `iss`, byte for byte. */
  readonly issuer: string
  /** All keys that may still verify, the signing one first. */
  keys(): readonly IssuerKey[]
  /** True when this token's session was revoked; asked on each use of a verified token, so it must not wait for anything. */
  isRevoked(claims: Claims): boolean
  /**
   * False when this token was issued before this process could know and its session is nowhere: it was revoked, or its state is
   * lost. Asked once for each token that is verified, after `isRevoked`. Rejects with `store_unavailable`.
   */
  hasSession(claims: Claims): Promise<boolean>
}
