import { createHash, timingSafeEqual } from 'node:crypto'
import { asFailure, type Claims, type Clock, type Log, type Metrics } from '../../core/index.ts'
import { scopesIn } from '../../oauth/index.ts'
import type { Client } from '../clients/client.ts'
import { FAMILY_MS, type Lifespans } from '../lifespans.ts'
import type { Audit } from '../deps.ts'
import { OAuthError } from '../oauth-error.ts'
import type { ResourceNames } from '../resource-names.ts'
import type { UpstreamSessions } from '../sessions/session.ts'
import type { CodeGrant, Codes, FoundCode } from './codes.ts'
import type { Families, FamilyGrant } from './families.ts'
import { createTokenCounter } from './counter.ts'
import type { IssueToken, TokenAnswer } from './issue.ts'
import { loginOf } from './stored-login.ts'

/** The recognized parameters of a token request; only `resource` may occur more than once. */
export interface TokenParameters {
  readonly code?: string | undefined
  readonly code_verifier?: string | undefined
  readonly redirect_uri?: string | undefined
  readonly refresh_token?: string | undefined
  readonly assertion?: string | undefined
  readonly scope?: string | undefined
  readonly resource?: string | readonly string[] | undefined
}

export interface TokenServiceOptions {
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
  readonly audit: Audit
  readonly lifespans: Lifespans
  readonly resources: ResourceNames
  readonly issue: IssueToken
  readonly codes: Codes
  readonly families: Families
  readonly sessions: UpstreamSessions
}

/**
 * The grants of the token endpoint, for an authenticated client. Both throw `OAuthError`, `Failure` and `StoreError`.
 */
export interface TokenService {
  redeem(client: Client, parameters: TokenParameters): Promise<TokenAnswer>
  refresh(client: Client, parameters: TokenParameters): Promise<TokenAnswer>
  /** The family of one of this server's refresh tokens, for revocation; undefined for any other token. */
  familyOf(token: string): Promise<FamilyGrant | undefined>
  /** Ends a login: its refresh family, upstream tokens and, on all replicas, access tokens (authserver.md §3). */
  end(tsid: string): Promise<void>
}

const VERIFIER = /^[A-Za-z0-9._~-]{43,128}$/

export function createTokenService(options: TokenServiceOptions): TokenService {
  const { clock, log, audit, lifespans, resources, issue, codes, families, sessions } = options
  const counted = createTokenCounter(options.metrics)
  const replays = options.metrics.counter(
    'extauth_authserver_replays_total',
    'Reused codes and refresh tokens; the session was revoked.',
    ['kind'],
  )

  const end = async (tsid: string): Promise<void> => {
    await Promise.all([families.end(tsid), sessions.end(tsid)])
    audit({ type: 'session_revoked', outcome: 'success', target: { type: 'session', name: tsid } })
  }

  const replayed = async (kind: string, tsid: string, client: Client): Promise<never> => {
    replays.with(kind).add()
    log.warn({ kind, client: client.id, session: tsid }, 'code or refresh token reused; session revoked')
    const target = { type: 'session', name: tsid }
    audit({ type: 'token_reused', outcome: 'denied', clientId: client.id, target, details: { kind } })
    await end(tsid)
    throw new OAuthError('invalid_grant', 'the grant is no longer valid')
  }

  /** Concurrent uses just fail; a use after the tokens were issued means that the code or the tokens were stolen. */
  const spentCode = (found: FoundCode, client: Client): Promise<never> => {
    if (found.isRedeemed) return replayed('code', found.grant.tsid, client)
    throw new OAuthError('invalid_grant', 'the code was already redeemed')
  }

  const accessToken = (
    grant: Pick<FamilyGrant, 'tsid' | 'clientId' | 'subject' | 'authenticatedAtMs' | 'resource' | 'endsAtMs'>,
    scope: readonly string[],
    claims: Claims,
  ): Promise<TokenAnswer> => {
    const { tsid, clientId, subject, authenticatedAtMs } = grant
    const lifespanMs = Math.max(1_000, Math.min(lifespans.accessMs, grant.endsAtMs - clock.now()))
    return issue({ tsid, clientId, subject, authenticatedAtMs, scope, lifespanMs, claims, audience: grant.resource })
  }

  const begin = async (client: Client, code: CodeGrant, scope: readonly string[]): Promise<TokenAnswer> => {
    const { tsid, subject, resource, authenticatedAtMs, logins } = code
    const hasRefresh = client.grantTypes.includes('refresh_token')
    const [first] = logins
    if (first === undefined) throw new OAuthError('server_error', 'a code without a login')
    // Without a refresh token the upstream's tokens become useless when the access token expires.
    const endsAtMs = hasRefresh ? first.atMs + FAMILY_MS : clock.now() + lifespans.accessMs
    await sessions.create({ tsid, subject, clientId: client.id, firstProvider: first.provider, resource, endsAtMs })
    for (const login of logins) await sessions.addLeg(tsid, login.provider, loginOf(login))
    const grant: FamilyGrant = {
      tsid,
      subject,
      resource,
      authenticatedAtMs,
      endsAtMs,
      clientId: client.id,
      scope: code.scope,
      ...(code.notGranted === undefined ? {} : { notGranted: code.notGranted }),
    }
    const refreshToken = hasRefresh ? await families.start(grant) : undefined
    const answer = await accessToken(grant, scope, first.claims)
    return { ...answer, ...(refreshToken === undefined ? {} : { refresh_token: refreshToken }) }
  }

  const redeem: TokenService['redeem'] = async (client, parameters) => {
    const code = required(parameters.code, 'code')
    const verifier = required(parameters.code_verifier, 'code_verifier')
    const found = await codes.find(code)
    if (found === undefined || found.grant.clientId !== client.id)
      throw new OAuthError('invalid_grant', 'the code is not valid')
    const { grant } = found
    checkRedirectUri(parameters.redirect_uri, grant)
    checkVerifier(verifier, grant.challenge)
    // Everything but the time is valid: the caller has the verifier too (OAuth 2.1 §4.1.3).
    if (found.isSpent) return spentCode(found, client)
    checkResource(parameters.resource, grant.resource, resources)
    const scope = narrowed(parameters.scope, grant)
    if (!(await codes.spend(found))) return spentCode(found, client)
    const answer = await begin(client, grant, scope).catch(undefinedIfEnded)
    if (answer !== undefined) {
      await codes.noteRedeemed(found)
      return answer
    }
    await end(grant.tsid)
    throw new OAuthError('invalid_grant', 'the grant is no longer valid')
  }

  const refresh: TokenService['refresh'] = async (client, parameters) => {
    const token = required(parameters.refresh_token, 'refresh_token')
    const found = await families.find(token)
    if (found === undefined || found.standing === 'expired')
      throw new OAuthError('invalid_grant', 'the refresh token is not valid')
    const { family, standing } = found
    if (standing === 'stale' || family.clientId !== client.id) return replayed('refresh_token', family.tsid, client)
    checkResource(parameters.resource, family.resource, resources)
    const scope = narrowed(parameters.scope, family)
    // Before the token is consumed: a temporarily unreachable upstream costs no login.
    const renewed = await sessions.renewClaims(family.tsid).catch(refusedIfLost)
    if (renewed === undefined) {
      await end(family.tsid)
      throw new OAuthError('invalid_grant', 'the session at the identity provider has ended')
    }
    const next = await families.next(token)
    if (next === undefined) throw new OAuthError('invalid_grant', 'the refresh token is no longer valid')
    return { ...(await accessToken(family, scope, renewed.claims)), refresh_token: next }
  }

  return {
    redeem: counted('authorization_code', redeem),
    refresh: counted('refresh_token', refresh),
    familyOf: async (token) => (await families.find(token))?.family,
    end,
  }
}

/** For a login that ended concurrently; rethrows other errors. */
function undefinedIfEnded(error: unknown): undefined {
  if (asFailure(error).code !== 'no_session') throw error
}

/** The upstream rejects now, but the session is kept: the client logs in again meanwhile. */
function refusedIfLost(error: unknown): never {
  if (asFailure(error).code !== 'no_session') throw error
  throw new OAuthError('invalid_grant', 'the identity provider refuses to renew the session')
}

function required(value: string | undefined, name: string): string {
  if (value === undefined || value === '') throw new OAuthError('invalid_request', `${name} is missing`)
  return value
}

/** A redirect URI of the authorization request must be repeated (RFC 6749 §4.1.3). */
function checkRedirectUri(given: string | undefined, grant: CodeGrant): void {
  if (given === grant.redirectUri || (given === undefined && !grant.isRedirectGiven)) return
  if (given === undefined) throw new OAuthError('invalid_request', 'redirect_uri is missing')
  throw new OAuthError('invalid_grant', 'redirect_uri differs from the authorization request')
}

/** RFC 7636 §4.6. */
function checkVerifier(verifier: string, challenge: string): void {
  if (!VERIFIER.test(verifier))
    throw new OAuthError('invalid_request', 'code_verifier is not 43 to 128 unreserved characters')
  const computed = createHash('sha256').update(verifier).digest('base64url')
  if (computed.length !== challenge.length || !timingSafeEqual(Buffer.from(computed), Buffer.from(challenge)))
    throw new OAuthError('invalid_grant', 'code_verifier does not match code_challenge')
}

/** `resource` may repeat what was granted, never widen it (RFC 8707 §2.2). */
function checkResource(given: TokenParameters['resource'], granted: string, resources: ResourceNames): void {
  const indicators = given === undefined ? [] : typeof given === 'string' ? [given] : given
  if (indicators.some((indicator) => resources.find(indicator)?.url !== granted))
    throw new OAuthError('invalid_target', 'resource differs from the granted one')
  // A resource without a route is no valid audience.
  if (resources.find(granted) === undefined) throw new OAuthError('invalid_target', 'the resource is no longer served')
}

/**
 * `scope` may narrow the grant, never widen it (RFC 6749 §6). Scopes that were requested at login but not granted are
 * ignored, because clients repeat that request.
 */
function narrowed(
  given: string | undefined,
  { scope: granted, notGranted = [] }: Pick<FamilyGrant, 'scope' | 'notGranted'>,
): readonly string[] {
  const asked = scopesIn(given)
  if (asked.length === 0) return granted
  if (asked.some((one) => !granted.includes(one) && !notGranted.includes(one)))
    throw new OAuthError('invalid_scope', 'scope exceeds the grant')
  return asked.filter((one) => granted.includes(one))
}
