import type { Claims, Clock, Log } from '../../core/index.ts'
import type { KeyRing } from '../../signing/index.ts'
import type { Audit } from '../deps.ts'
import { OAuthError } from '../oauth-error.ts'
import { type AccessTokenInput, signAccessToken } from './access-token.ts'
import { selectClaims } from './claims.ts'

/** RFC 6749 §5.1. */
export interface TokenAnswer {
  readonly access_token: string
  readonly token_type: 'Bearer'
  readonly expires_in: number
  readonly scope?: string
  readonly refresh_token?: string
}

/** Inputs of an access token that are not the server's. */
export type TokenRequest = Omit<AccessTokenInput, 'issuer' | 'claims' | 'nowMs'> & {
  /** Claims of an upstream or an assertion, some of which are copied. */
  readonly claims: Claims
}

/** Signs an access token and builds its response. Throws `OAuthError` `server_error` without a key. */
export type IssueToken = (request: TokenRequest) => Promise<TokenAnswer>

export function createIssueToken(options: {
  readonly issuer: string
  readonly clock: Clock
  readonly log: Log
  readonly audit: Audit
  readonly forwardClaims: readonly string[]
  readonly ring: KeyRing
}): IssueToken {
  const { issuer, clock, log, audit, forwardClaims, ring } = options
  return async ({ claims, ...request }) => {
    const selected = selectClaims(claims, forwardClaims)
    if (selected.left.length > 0)
      log.warn({ claims: selected.left }, 'claims of the identity provider omitted: too large for access tokens')
    const [key] = ring.keys()
    if (key === undefined) throw new OAuthError('server_error', 'there is no signing key')
    const { scope, lifespanMs } = request
    const token = await signAccessToken({ ...request, issuer, nowMs: clock.now(), claims: selected.claims }, key)
    const { clientId, subject, audience, grant } = request
    audit({
      type: 'token_issued',
      outcome: 'success',
      userId: subject,
      clientId,
      target: { type: 'resource', name: audience },
      details: { grant, scope, lifetimeSeconds: Math.floor(lifespanMs / 1000) },
    })
    return {
      access_token: token,
      token_type: 'Bearer',
      expires_in: Math.floor(lifespanMs / 1000),
      ...(scope.length === 0 ? {} : { scope: scope.join(' ') }),
    }
  }
}
