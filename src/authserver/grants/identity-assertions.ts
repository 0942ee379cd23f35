import type { Clock } from '../../core/index.ts'
import { ID_JAG, scopesIn } from '../../oauth/index.ts'
import type { IdentityAssertionIssuer } from '../../resources/index.ts'
import { createTrustedKeys, type TrustedKeys, type UpstreamDeps } from '../../upstreams/index.ts'
import type { AuthServerResource } from '../config.ts'
import type { Client } from '../clients/client.ts'
import type { ResourceNames } from '../resource-names.ts'
import type { TokenParameters } from '../tokens/token-service.ts'
import { subjectOf } from '../tokens/subject.ts'
import {
  type Assertion,
  checkAudience,
  checkIdentifier,
  checkSigned,
  checkTimes,
  checkUnbound,
  subjectIn,
} from './assertion.ts'
import type { Granted } from './granted.ts'
import { RefusedAssertion } from '../oauth-error.ts'
import { assertedTarget, grantedScope, targetOf } from './targets.ts'

/** Maximum time to the expiry of an identity assertion. */
const MOST_AHEAD_MS = 10 * 60_000

/** Identity assertions of trusted issuers (clientauth.md §3). */
export interface IdentityAssertions {
  /**
   * Returns the grant of an assertion. Throws `RefusedAssertion`, `OAuthError`, and `Failure` while keys are
   * unavailable.
   */
  accept(client: Client, assertion: Assertion, parameters: TokenParameters): Promise<Granted>
  close(): Promise<void>
}

interface Trusted {
  readonly issuer: IdentityAssertionIssuer
  readonly keys: TrustedKeys
}

export function createIdentityAssertions(
  issuers: readonly IdentityAssertionIssuer[],
  options: {
    readonly issuer: string
    readonly resources: ResourceNames
    readonly clock: Clock
    readonly deps: UpstreamDeps
  },
): IdentityAssertions {
  const { resources, clock, deps } = options
  const trusted = new Map<string, Trusted>(
    issuers.map((issuer) => [issuer.issuerUrl, { issuer, keys: createTrustedKeys(issuer, deps) }]),
  )

  return {
    async accept(client, assertion, parameters) {
      const { claims, type } = assertion
      if (type !== ID_JAG) throw new RefusedAssertion(`typ is not ${ID_JAG}`)
      checkClient(client)
      const known = typeof claims.iss === 'string' ? trusted.get(claims.iss) : undefined
      if (known === undefined) throw new RefusedAssertion('iss is not among identityAssertions.issuers')
      checkAudience(claims, options.issuer)
      checkClientId(claims.client_id, client, known.issuer)
      if (claims.iat === undefined) throw new RefusedAssertion('iat is missing')
      checkTimes(claims, clock.now(), MOST_AHEAD_MS)
      checkIdentifier(claims)
      checkUnbound(claims)
      const subject = subjectIn(claims)
      const asserted = assertedScopes(claims.scope)
      const named = resourceIn(claims.resource, client, resources)
      await checkSigned(assertion, known.keys.keys)
      // The assertion may have expired while keys were fetched.
      checkTimes(claims, clock.now(), MOST_AHEAD_MS)
      const resource = agreed(named, parameters, client, resources)
      return {
        grant: 'id-jag',
        clientId: client.id,
        subject: subjectOf(known.issuer.issuerUrl, subject),
        resource: resource.url,
        scope: grantedScope(parameters.scope, resource, [asserted, client.bounds?.scopes]),
        claims,
        lifetimeMs: client.bounds?.lifetimeMs,
      }
    },
    async close() {
      await Promise.all([...trusted.values()].map(({ keys }) => keys.close()))
    },
  }
}

/** Public clients can be impersonated; a registration without its own secret or key proves nothing. */
function checkClient({ kind, authMethod }: Client): void {
  const isConfidential = kind === 'document' ? authMethod === 'private_key_jwt' : authMethod !== 'none'
  if (!isConfidential) throw new RefusedAssertion('the client is public')
}

/** The presenting client must be the one it was issued for. */
function checkClientId(given: unknown, client: Client, { clients }: IdentityAssertionIssuer): void {
  const { clientId, at = clientId } = clients?.find((entry) => entry.clientId === given) ?? {}
  if (client.id !== (clients === undefined ? given : at))
    throw new RefusedAssertion('client_id is not the client that presents it')
}

/** RFC 6749 §3.3; undefined when the issuer sets no scopes. */
function assertedScopes(scope: unknown): readonly string[] | undefined {
  if (scope === undefined) return undefined
  if (typeof scope !== 'string') throw new RefusedAssertion('scope is not a string')
  return scopesIn(scope)
}

/** The served resource in `resource`, a string or an array of one; undefined when absent. */
function resourceIn(given: unknown, { bounds }: Client, names: ResourceNames): AuthServerResource | undefined {
  if (given === undefined) return undefined
  const name: unknown = Array.isArray(given) && given.length === 1 ? (given as readonly unknown[])[0] : given
  const resource = typeof name === 'string' ? assertedTarget(name, names, bounds) : undefined
  if (resource === undefined) throw new RefusedAssertion('resource is not served here, or not allowed for this client')
  return resource
}

/** The request may repeat the assertion's resource, and sets it when the assertion has none. */
function agreed(
  named: AuthServerResource | undefined,
  { resource }: TokenParameters,
  { bounds }: Client,
  names: ResourceNames,
): AuthServerResource {
  if (named === undefined) return targetOf(resource, names, bounds)
  const asked = resource === undefined ? named : targetOf(resource, names, bounds)
  if (asked.url !== named.url) throw new RefusedAssertion('the request names a different resource')
  return named
}
