import type { Claims, Secret } from '../core/index.ts'

/** One way to an upstream and back: what binds its answer to the question. Made and kept by the login flow. */
export interface UpstreamLeg {
  /** At least 128 random bits, single use; the flow compares it before it calls `finish`. */
  readonly state: string
  /** For the ID token (OpenID Connect Core §3.1.2.1); OAuth2 upstreams don't get it. */
  readonly nonce: string
  /** RFC 7636 §4.1: 43 to 128 characters; the upstream gets its S256 challenge. */
  readonly codeVerifier: Secret
  /** Where the upstream sends the browser; the same at the token endpoint. */
  readonly redirectUri: string
  /** The parameter `claims` (OpenID Connect Core §5.5), a JSON object. Default: none. */
  readonly claims?: string | undefined
}

/** What an upstream's token endpoint gave. */
export interface UpstreamTokenSet {
  readonly accessToken: Secret
  readonly refreshToken: Secret | undefined
  readonly idToken: Secret | undefined
  /** End of the access token, milliseconds since the epoch; undefined when the upstream did not say. */
  readonly expiresAtMs: number | undefined
  /** `exp` of the ID token, milliseconds since the epoch. */
  readonly idTokenExpiresAtMs: number | undefined
  /** What was granted; what was asked for where the upstream does not say (RFC 6749 §5.1). */
  readonly scopes: readonly string[]
}

/** Tokens, and whose they are. */
export interface UpstreamLogin {
  readonly tokens: UpstreamTokenSet
  /** The upstream's own name for the user, never empty. */
  readonly subject: string
  /**
   * What the upstream said of the user, as it came: the ID token's claims, for those that it lacks those of user info, and
   * `sub`, `name` and `email` where they were found. Empty after a refresh that brought no new ID token.
   */
  readonly claims: Claims
}

/**
 * An identity provider in front of which the embedded authorization server stands (authserver.md §4). All methods throw
 * `Failure`: `login_refused` when the user or the upstream's policy said no, `identity_provider_unavailable` when it can't
 * be reached, `identity_provider_error` for an answer that can't be used, `config_error` when it refuses us as a client,
 * `secret_unavailable`. No text of the upstream's is in them, only its error codes.
 */
export interface Upstream {
  readonly name: string
  /** OIDC issuer; for OAuth2 the user-info URL, or that of the token endpoint where it says who it is: the first part of our `sub` (authserver.md §4.6). */
  readonly identityProvider: string
  /** Where the browser is sent. */
  authorizationUrl(leg: UpstreamLeg): Promise<URL>
  /**
   * The parameters that came back → code → tokens → who it is (authserver.md §4.4). `iss` is checked where the upstream
   * announces it (RFC 9207).
   */
  finish(leg: UpstreamLeg, callback: URLSearchParams): Promise<UpstreamLogin>
  /**
   * New tokens for a refresh token; the old refresh token stays where no new one came. With a new ID token its claims, and its
   * `sub` is the `subject`'s. Nothing of the upstream's is waited for after `endsAtMs` (`performance.now()`). Throws
   * `no_session` when the upstream refuses the refresh token (`invalid_grant`) or there is none.
   */
  refresh(tokens: UpstreamTokenSet, subject: string, endsAtMs: number): Promise<UpstreamLogin>
  /**
   * Tells the upstream that these tokens are not needed any more (RFC 7009): the refresh token, which takes the others along, or
   * the access token where there is none. Done where its metadata name an endpoint; 5 s at most. Absent: it has no metadata.
   */
  revoke?(tokens: UpstreamTokenSet): Promise<void>
  close(): Promise<void>
}
