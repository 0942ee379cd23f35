import { FAILURES, type Failure } from '../core/index.ts'

export interface Challenge {
  readonly realm: string
  /** Absent if the request had no credentials (RFC 6750 §3.1). */
  readonly error?: string | undefined
  readonly errorDescription?: string | undefined
  /** Space-separated. */
  readonly scope?: string | undefined
  /** RFC 9470 §3: space-separated. */
  readonly acrValues?: string | undefined
  /** RFC 9470 §3: seconds. */
  readonly maxAge?: number | undefined
  /** URL of the RFC 9728 document. */
  readonly resourceMetadata?: string | undefined
}

/**
 * The value of a `WWW-Authenticate` header with the scheme Bearer (RFC 6750 §3, RFC 9728 §5.1), parameters in a fixed
 * order. Characters that are invalid in a quoted-string are removed (RFC 9110 §5.6.4).
 */
export function renderChallenge(challenge: Challenge): string {
  let text = `Bearer realm=${quoted(challenge.realm)}`
  if (challenge.error !== undefined) text += `, error=${quoted(challenge.error)}`
  if (challenge.errorDescription !== undefined) text += `, error_description=${quoted(challenge.errorDescription)}`
  if (challenge.scope !== undefined && challenge.scope !== '') text += `, scope=${quoted(challenge.scope)}`
  if (challenge.acrValues !== undefined) text += `, acr_values=${quoted(challenge.acrValues)}`
  if (challenge.maxAge !== undefined) text += `, max_age=${quoted(String(challenge.maxAge))}`
  if (challenge.resourceMetadata !== undefined) text += `, resource_metadata=${quoted(challenge.resourceMetadata)}`
  return text
}

export interface ProtectedResource {
  readonly realm: string
  /** URL of the RFC 9728 document; undefined if the resource has no public URL. */
  readonly resourceMetadata: string | undefined
  readonly requiredScopes: readonly string[]
}

/**
 * The challenge for a failure, or undefined: for every 401, a missing scope (403), and malformed credentials (400)
 * (RFC 6750 §3.1, decisions §2.7). Without `error` if the request had no credentials.
 */
export function challengeFor(failure: Failure, resource: ProtectedResource): string | undefined {
  const row = FAILURES[failure.code]
  if (row.status !== 401 && failure.challenge === undefined) return undefined
  const error =
    failure.code === 'missing_token'
      ? undefined
      : (failure.challenge?.error ?? (row.status === 401 ? row.oauthError : undefined))
  return renderChallenge({
    realm: resource.realm,
    error,
    errorDescription: error === undefined ? undefined : row.sentence,
    scope: failure.challenge?.scope ?? resource.requiredScopes.join(' '),
    acrValues: failure.challenge?.acrValues,
    maxAge: failure.challenge?.maxAge,
    resourceMetadata: resource.resourceMetadata,
  })
}

/**
 * The challenge of the upstream authorization server in a failure, or undefined: without a realm, sent in addition to
 * the proxy's own (Entra ID, claims challenge).
 */
export function stepUpChallengeFor({ challenge }: Failure): string | undefined {
  if (challenge?.stepUp === undefined) return undefined
  const { authorizationUri, claims } = challenge.stepUp
  const asked =
    claims === undefined ? 'error="interaction_required"' : `error="insufficient_claims", claims=${quoted(claims)}`
  return `Bearer realm="", authorization_uri=${quoted(authorizationUri)}, ${asked}`
}

const quoted = (text: string): string =>
  `"${text.replace(/[^\t\x20-\x7e]/g, '').replace(/["\\]/g, (character) => `\\${character}`)}"`
