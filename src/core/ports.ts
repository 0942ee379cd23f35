import type { AuthenticatedCaller } from './caller.ts'
import type { Secret } from './secret.ts'

/** Wall clock. `now()` is in milliseconds since the epoch. Passed in everywhere so that tests own the time. */
export interface Clock {
  now(): number
}

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
  gauge(
    name: string,
    help: string,
    labelNames?: readonly string[],
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

/** Secrets by reference (`SecretRef` of the specification). */
export interface Secrets {
  handle(ref: { readonly name: string; readonly key: string }): SecretHandle
}

/** The upstream tokens that the embedded authorization server holds for a caller's session. */
export interface UpstreamTokens {
  /** A live access token of `provider`, refreshed when it has under 60 s left; throws `no_session` when there is none. */
  accessToken(caller: AuthenticatedCaller, provider: string): Promise<{ token: Secret; expiresAtMs: number }>
}
