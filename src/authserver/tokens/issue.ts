import type { Claims, Clock, Log } from '../../core/index.ts'
import type { KeyRing } from '../../signing/index.ts'
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

/** What an access token is made of beside what is the server's. */
export type TokenRequest = Omit<AccessTokenInput, 'issuer' | 'claims' | 'nowMs'> & {
  /** Of an upstream or an assertion; ours takes over what it takes over. */
  readonly claims: Claims
}

/** Makes an access token and the answer that gives it out. Throws `OAuthError` `server_error` without a key. */
export type IssueToken = (request: TokenRequest) => Promise<TokenAnswer>

export function createIssueToken(options: {
  readonly issuer: string
  readonly clock: Clock
  readonly log: Log
  readonly forwardClaims: readonly string[]
  readonly ring: KeyRing
}): IssueToken {
  const { issuer, clock, log, forwardClaims, ring } = options
  return async ({ claims, ...request }) => {
    const selected = selectClaims(claims, forwardClaims)
    if (selected.left.length > 0)
      log.warn({ claims: selected.left }, 'claims of the identity provider are too large for our tokens and left out')
    const [key] = ring.keys()
    if (key === undefined) throw new OAuthError('server_error', 'there is no signing key')
    const { scope, lifespanMs } = request
    const token = await signAccessToken({ ...request, issuer, nowMs: clock.now(), claims: selected.claims }, key)
    return {
      access_token: token,
      token_type: 'Bearer',
      expires_in: Math.floor(lifespanMs / 1000),
      ...(scope.length === 0 ? {} : { scope: scope.join(' ') }),
    }
  }
}
