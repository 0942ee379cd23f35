import { type Claims, type Clock, type Log, type Metrics } from '../../core/index.ts'
import { subjectOf } from '../tokens/subject.ts'
import { type Lifespans, WITHOUT_LOGIN_MS } from '../lifespans.ts'
import { OAuthError } from '../oauth-error.ts'
import type { Client } from '../clients/client.ts'
import type { ResourceNames } from '../resource-names.ts'
import { createTokenCounter } from '../tokens/counter.ts'
import type { IssueToken, TokenAnswer } from '../tokens/issue.ts'
import type { TokenParameters } from '../tokens/token-service.ts'
import { readAssertion } from './assertion.ts'
import type { Granted } from './granted.ts'
import type { IdentityAssertions } from './identity-assertions.ts'
import { RefusedAssertion } from './refused-assertion.ts'
import { grantedScope, targetOf } from './targets.ts'

/** Tokens for requests that no login stands behind: no refresh token, no session (clientauth.md §3). They throw as `TokenService`. */
export interface GrantsWithoutLogin {
  /** RFC 7523 §2.1, for a client that is known by now. */
  assertion(client: Client, parameters: TokenParameters): Promise<TokenAnswer>
  /** RFC 6749 §4.4. */
  clientCredentials(client: Client, parameters: TokenParameters): Promise<TokenAnswer>
}

export interface GrantsOptions {
  readonly issuer: string
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
  readonly lifespans: Lifespans
  readonly resources: ResourceNames
  readonly issue: IssueToken
  /** Undefined for a server that takes none. */
  readonly identityAssertions: IdentityAssertions | undefined
}

const NO_CLAIMS: Claims = Object.freeze(Object.create(null) as Record<string, never>)

export function createGrantsWithoutLogin(options: GrantsOptions): GrantsWithoutLogin {
  const { issuer, clock, log, lifespans, resources, issue, identityAssertions } = options
  const counted = createTokenCounter(options.metrics)

  const give = async (granted: Granted): Promise<TokenAnswer> => {
    const { grant, clientId, subject, resource, scope, claims = NO_CLAIMS } = granted
    const lifespanMs = Math.min(granted.lifetimeMs ?? lifespans.accessMs, WITHOUT_LOGIN_MS)
    const authenticatedAtMs = authenticatedAt(claims, clock.now())
    const answer = await issue({
      grant,
      clientId,
      subject,
      audience: resource,
      scope,
      claims,
      lifespanMs,
      authenticatedAtMs,
    })
    log.info({ grant, client: clientId, resource }, 'a token was given out without a login')
    return answer
  }

  const assertion = async (client: Client, parameters: TokenParameters): Promise<TokenAnswer> => {
    const { assertion: text } = parameters
    if (text === undefined || text === '') throw new OAuthError('invalid_request', 'assertion is missing')
    try {
      if (identityAssertions === undefined) throw new RefusedAssertion('identity assertions are not taken here')
      return await give(await identityAssertions.accept(client, readAssertion(text), parameters))
    } catch (error) {
      if (error instanceof RefusedAssertion)
        log.warn({ client: client.id, reason: error.error, detail: error.why }, 'an assertion was refused')
      throw error
    }
  }

  const clientCredentials = async (client: Client, parameters: TokenParameters): Promise<TokenAnswer> => {
    const { id, kind, bounds } = client
    // Whoever registers gets a secret, too; that is worth nothing by itself.
    if (kind !== 'configured' || bounds === undefined)
      throw new OAuthError('unauthorized_client', 'the client is not one of the configuration')
    const resource = targetOf(parameters.resource, resources, bounds)
    const scope = grantedScope(parameters.scope, resource, [bounds.scopes ?? []])
    return give({
      grant: 'client_credentials',
      clientId: id,
      subject: subjectOf(issuer, id),
      resource: resource.url,
      scope,
      claims: undefined,
      lifetimeMs: bounds.lifetimeMs,
    })
  }

  return {
    assertion: counted('id_jag', assertion),
    clientCredentials: counted('client_credentials', clientCredentials),
  }
}

/** `auth_time` of an assertion: when its issuer has seen the user. */
function authenticatedAt({ auth_time: seconds }: Claims, nowMs: number): number | undefined {
  return typeof seconds === 'number' && seconds > 0 && seconds * 1_000 <= nowMs ? seconds * 1_000 : undefined
}
