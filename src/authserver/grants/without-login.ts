import { type Claims, type Clock, type EpochMs, type Log, type Metrics, NO_CLAIMS } from '../../core/index.ts'
import { subjectOf } from '../tokens/subject.ts'
import { type Lifespans, WITHOUT_LOGIN_MS } from '../lifespans.ts'
import { OAuthError, RefusedAssertion } from '../oauth-error.ts'
import type { Client } from '../clients/client.ts'
import type { ResourceNames } from '../resource-names.ts'
import { createTokenCounter } from '../tokens/counter.ts'
import type { IssueToken, TokenAnswer } from '../tokens/issue.ts'
import type { TokenParameters } from '../tokens/token-service.ts'
import { type Assertion, readAssertion } from './assertion.ts'
import type { Granted } from './granted.ts'
import type { IdentityAssertions } from './identity-assertions.ts'
import { grantedScope, targetOf } from './targets.ts'
import type { Workloads } from './workloads.ts'

/** Issues tokens without a login: no refresh token, no session (clientauth.md §3). Throws as `TokenService`. */
export interface GrantsWithoutLogin {
  /** RFC 7523 §2.1, for an authenticated client. */
  assertion(client: Client, parameters: TokenParameters): Promise<TokenAnswer>
  /** As above, for a workload that presents its own token and no client; undefined when not configured. */
  readonly workload: ((parameters: TokenParameters) => Promise<TokenAnswer>) | undefined
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
  /** Undefined when not configured. */
  readonly identityAssertions: IdentityAssertions | undefined
  /** Undefined when not configured. */
  readonly workloads: Workloads | undefined
}

export function createGrantsWithoutLogin(options: GrantsOptions): GrantsWithoutLogin {
  const { issuer, clock, log, lifespans, resources, issue, identityAssertions, workloads } = options
  const counted = createTokenCounter(options.metrics)

  const give = async (granted: Granted): Promise<TokenAnswer> => {
    const { grant, clientId, subject, resource, scope, claims = NO_CLAIMS } = granted
    const lifespanMs = Math.min(
      granted.lifetimeMs ?? lifespans.accessMs,
      granted.leftMs ?? WITHOUT_LOGIN_MS,
      WITHOUT_LOGIN_MS,
    )
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
    const { by } = granted
    log.info({ grant, client: clientId, resource, ...(by && { by }) }, 'token issued without a login')
    return answer
  }

  /** Logs why an assertion was rejected. */
  const refusing = async (whose: object, work: () => Promise<TokenAnswer>): Promise<TokenAnswer> => {
    try {
      return await work()
    } catch (error) {
      if (error instanceof RefusedAssertion)
        log.warn({ ...whose, reason: error.error, detail: error.why }, 'assertion rejected')
      throw error
    }
  }

  const assertion = (client: Client, parameters: TokenParameters): Promise<TokenAnswer> =>
    refusing({ client: client.id }, async () => {
      if (identityAssertions === undefined)
        throw new RefusedAssertion(
          'identity assertions are not supported here; a workload must not send client authentication with its token',
        )
      return give(await identityAssertions.accept(client, assertionIn(parameters), parameters))
    })

  const workload =
    workloads &&
    ((parameters: TokenParameters): Promise<TokenAnswer> =>
      refusing({}, async () => give(await workloads.accept(assertionIn(parameters), parameters))))

  const clientCredentials = async (client: Client, parameters: TokenParameters): Promise<TokenAnswer> => {
    const { id, kind, bounds } = client
    // Registration alone, even with a secret, gives no access.
    if (kind !== 'configured' || bounds === undefined)
      throw new OAuthError('unauthorized_client', 'the client is not configured for this grant')
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
    workload: workload && counted('workload', workload),
    clientCredentials: counted('client_credentials', clientCredentials),
  }
}

function assertionIn({ assertion: text }: TokenParameters): Assertion {
  if (text === undefined || text === '') throw new OAuthError('invalid_request', 'assertion is missing')
  return readAssertion(text)
}

/** `auth_time` of an assertion: when its issuer authenticated the user. */
function authenticatedAt({ auth_time: seconds }: Claims, nowMs: EpochMs): number | undefined {
  return typeof seconds === 'number' && seconds > 0 && seconds * 1_000 <= nowMs ? seconds * 1_000 : undefined
}
