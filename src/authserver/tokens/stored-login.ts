import { type Claims, type EpochMs, Secret } from '../../core/index.ts'
import type { UpstreamLogin } from '../../upstreams/index.ts'

/** The sealed result of one upstream, kept until the code is redeemed. */
export interface StoredLogin {
  readonly provider: string
  /** When the user returned from there. */
  readonly atMs: EpochMs
  readonly subject: string
  readonly claims: Claims
  readonly accessToken: string
  readonly refreshToken: string | undefined
  readonly idToken: string | undefined
  readonly expiresAtMs: EpochMs | undefined
  readonly idTokenExpiresAtMs: EpochMs | undefined
  readonly scopes: readonly string[]
}

/** Converts an upstream login for storage; must be sealed. */
export function storedLogin(provider: string, { subject, claims, tokens }: UpstreamLogin, atMs: EpochMs): StoredLogin {
  const { expiresAtMs, idTokenExpiresAtMs, scopes } = tokens
  return {
    provider,
    atMs,
    subject,
    claims,
    accessToken: tokens.accessToken.reveal(),
    refreshToken: tokens.refreshToken?.reveal(),
    idToken: tokens.idToken?.reveal(),
    expiresAtMs,
    idTokenExpiresAtMs,
    scopes,
  }
}

/** Converts a stored login back. */
export function loginOf(stored: StoredLogin): UpstreamLogin {
  const { subject, claims, expiresAtMs, idTokenExpiresAtMs, scopes } = stored
  const secret = (text: string | undefined): Secret | undefined => (text === undefined ? undefined : new Secret(text))
  const tokens = {
    accessToken: new Secret(stored.accessToken),
    refreshToken: secret(stored.refreshToken),
    idToken: secret(stored.idToken),
    expiresAtMs,
    idTokenExpiresAtMs,
    scopes,
  }
  return { subject, claims, tokens }
}
