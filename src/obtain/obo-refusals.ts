import { type ChallengeHint, type Claims, type FailureCode, FAILURES } from '../core/index.ts'
import { readJsonObject } from '../http/index.ts'
import { exchangeFailure, type Grant, type TokenRefusal } from '../oauth/index.ts'

/** A rejected token is not sent again for this long; the caller's next token is. */
const REFUSED_MS = 10 * 60_000
/** Header size limit of clients. */
const MAX_CLAIMS = 4096
const NO_CONSENT: ReadonlySet<number> = new Set([65001, 90094])
/** Failures that take precedence over a claims challenge, because no login helps. */
const BEFORE_CLAIMS: ReadonlySet<FailureCode> = new Set(['config_error', 'exchange_denied', 'not_a_user_token'])

/** The request, for messages about its rejection. */
export interface OboRequest {
  readonly scope: string
  readonly authorizationUri: string
  /** URL for administrator consent. */
  readonly consentUrl: string
}

/** The JSON object that the next login must request; undefined for anything else. */
const claimsIn = ({ claims }: Claims): string | undefined =>
  typeof claims === 'string' && claims.length <= MAX_CLAIMS && readJsonObject(Buffer.from(claims)) !== undefined
    ? claims
    : undefined

/**
 * The on-behalf-of grant of Entra ID (decisions §3.10). A refusal that concerns the caller is cached for ten minutes, or
 * until the caller presents a new token. The detail has the code, its meaning and the IDs for the tenant's sign-in log, but
 * no part of the description.
 */
export const oboGrant = (asked: OboRequest): Grant => ({
  noEndpoint: 'config_error',
  refused({ error, entra, members }: TokenRefusal) {
    if (error === undefined) return undefined
    const busy = exchangeFailure(error)
    if (busy === 'identity_provider_unavailable') return busy
    const { known } = entra
    const claims = claimsIn(members)
    const isInteraction = claims !== undefined || error === 'interaction_required'
    const code =
      isInteraction && (known === undefined || !BEFORE_CLAIMS.has(known.code))
        ? 'interaction_required'
        : (known?.code ?? busy)
    const { fault } = FAILURES[code]
    const isOfCaller = fault === 'caller_token' || fault === 'caller_rights'
    return {
      code,
      ...(known !== undefined && NO_CONSENT.has(known.aadsts)
        ? { note: ` to ${asked.scope}; an administrator does at ${asked.consentUrl}` }
        : {}),
      ...(fault === 'caller_token' ? { challenge: challengeOf(code, claims, asked) } : {}),
      ...(isOfCaller ? { refusedForMs: REFUSED_MS } : {}),
    }
  },
})

function challengeOf(code: FailureCode, claims: string | undefined, { authorizationUri }: OboRequest): ChallengeHint {
  if (code !== 'interaction_required') return { error: 'invalid_token' }
  const encoded = claims === undefined ? undefined : Buffer.from(claims).toString('base64')
  return { error: 'invalid_token', stepUp: { authorizationUri, claims: encoded } }
}
