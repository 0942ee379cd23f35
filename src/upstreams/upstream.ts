import type { Claims, EpochMs, MonotonicMs, Secret } from '../core/index.ts'

/**
 * One redirect to an upstream: the values that bind the callback to the request. Created and stored by the login
 * flow.
 */
export interface UpstreamLeg {
  /** At least 128 random bits, single use; compared before `finish` is called. */
  readonly state: string
  /** For the ID token (OpenID Connect Core §3.1.2.1); not sent to OAuth2 upstreams. */
  readonly nonce: string
  /** RFC 7636 §4.1: 43 to 128 characters; the upstream gets its S256 challenge. */
  readonly codeVerifier: Secret
  /** The redirect URI; also sent to the token endpoint. */
  readonly redirectUri: string
  /** The parameter `claims` (OpenID Connect Core §5.5), a JSON object. Default: none. */
  readonly claims?: string | undefined
  /** Scopes to request beside the configured ones. Default: none. */
  readonly scopes?: readonly string[] | undefined
  /** The authorization endpoint to which the browser was sent; undefined before. */
  readonly sentTo?: string | undefined
}

/** The tokens of an upstream. */
export interface UpstreamTokenSet {
  readonly accessToken: Secret
  readonly refreshToken: Secret | undefined
  readonly idToken: Secret | undefined
  /** Expiry of the access token; undefined when unknown. */
  readonly expiresAtMs: EpochMs | undefined
  /** `exp` of the ID token. */
  readonly idTokenExpiresAtMs: EpochMs | undefined
  /** The granted scopes; the requested ones if the response has none (RFC 6749 §5.1). */
  readonly scopes: readonly string[]
}

/** Tokens, and the user they belong to. */
export interface UpstreamLogin {
  readonly tokens: UpstreamTokenSet
  /** The upstream's subject of the user, never empty. */
  readonly subject: string
  /**
   * The user's claims: of the ID token, else of user info, with `sub`, `name` and `email` as found. Empty after a
   * refresh without a new ID token.
   */
  readonly claims: Claims
}

/**
 * An identity provider upstream of the embedded authorization server (authserver.md §4). All methods throw `Failure`:
 * `login_refused` when the user or its policy declines, `identity_provider_unavailable` when it is unreachable,
 * `identity_provider_error` for an unusable response, `config_error` when it rejects the client, `secret_unavailable`.
 * Failures contain its error codes but none of its messages.
 */
export interface Upstream {
  readonly name: string
  /**
   * OIDC issuer; for OAuth2 the user-info URL, or the token endpoint if it identifies the user: the first input of
   * the issued `sub` (authserver.md §4.6).
   */
  readonly identityProvider: string
  /** The authorization request URL. */
  authorizationUrl(redirect: UpstreamLeg): Promise<URL>
  /**
   * Callback parameters → code → tokens → user (authserver.md §4.4). `iss` is checked if the upstream announces it
   * (RFC 9207).
   */
  finish(redirect: UpstreamLeg, callback: URLSearchParams): Promise<UpstreamLogin>
  /**
   * Returns new tokens; keeps the old refresh token if the response has none. A new ID token must have the `sub` of
   * `subject`; its claims are included. Waits until `endsAtMs` at most. Throws `no_session` when the upstream rejects
   * the refresh token (`invalid_grant`) or there is none.
   */
  refresh(tokens: UpstreamTokenSet, subject: string, endsAtMs: MonotonicMs): Promise<UpstreamLogin>
  /**
   * Revokes tokens that are no longer needed (RFC 7009): the refresh token, then the access token, each within 5 s.
   * `subject` is the user of the tokens. False if the metadata name no endpoint. Absent: no metadata.
   */
  revoke?(tokens: UpstreamTokenSet, subject: string): Promise<boolean>
  /**
   * Tries an access token at the user-info endpoint with one request: whether it is accepted; undefined without an
   * endpoint. Absent: no such endpoint. Throws `identity_provider_unavailable` and `identity_provider_error`.
   */
  accepts?(tokens: UpstreamTokenSet): Promise<boolean | undefined>
  close(): Promise<void>
}
