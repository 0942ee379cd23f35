import { hashKey } from '../../cache/index.ts'
import { compileMatcher, type Matcher } from '../../cel/index.ts'
import type { Claims, Clock, EpochMs } from '../../core/index.ts'
import { parseGoDuration } from '../../fields/index.ts'
import type { WorkloadEntry } from '../../resources/index.ts'
import type { Store } from '../../storage/index.ts'
import { createTrustedKeys, type TrustedKeys, type UpstreamDeps } from '../../upstreams/index.ts'
import { checkResources } from '../clients/configured.ts'
import { EARLY_SECONDS, EXPIRED_SECONDS } from '../lifespans.ts'
import type { ResourceNames } from '../resource-names.ts'
import { storeFailure } from '../store-failure.ts'
import type { TokenParameters } from '../tokens/token-service.ts'
import { subjectOf } from '../tokens/subject.ts'
import {
  type Assertion,
  audienceIn,
  checkIdentifier,
  checkLife,
  checkSigned,
  checkTimes,
  checkUnbound,
  subjectIn,
} from './assertion.ts'
import type { Granted } from './granted.ts'
import { RefusedAssertion } from '../oauth-error.ts'
import { grantedScope, targetOf } from './targets.ts'

/** `typ` values of workload tokens: Kubernetes none, SPIFFE either, others JWT. */
const TYPES: ReadonlySet<string | undefined> = new Set([undefined, 'jwt', 'jose'])
/** Claims of login and logout tokens: such a token is about a person. */
const OF_PERSONS = ['nonce', 'auth_time', 'at_hash', 'c_hash', 'events'] as const

/** Workload tokens of platforms (clientauth.md §3). */
export interface Workloads {
  /**
   * Returns the grant of a workload token. Throws `RefusedAssertion`, `OAuthError`, and `Failure` while keys are
   * unavailable.
   */
  accept(assertion: Assertion, parameters: TokenParameters): Promise<Granted>
  close(): Promise<void>
}

interface Entry {
  readonly entry: WorkloadEntry
  readonly match: Matcher
  readonly audiences: ReadonlySet<unknown>
  readonly keys: TrustedKeys
  readonly mostMs: number
  readonly lifetimeMs: number | undefined
}

/** Throws `config_error` for a resource that no route of this server has. */
export function createWorkloads(
  configured: readonly WorkloadEntry[],
  options: {
    readonly resources: ResourceNames
    readonly clock: Clock
    /** Stores consumed tokens. */
    readonly store: Store
    readonly deps: UpstreamDeps
  },
): Workloads {
  const { resources, clock, store, deps } = options
  const known = new Map<string, TrustedKeys>()
  const keysOf = ({ issuerUrl, jwksUrl, caBundleRef, allowPrivateIP }: WorkloadEntry['issuer']): TrustedKeys => {
    const issuer = { issuerUrl, jwksUrl, caBundleRef, allowPrivateIP }
    const id = JSON.stringify(issuer)
    const keys = known.get(id) ?? createTrustedKeys(issuer, deps)
    known.set(id, keys)
    return keys
  }
  const entries = configured.map((entry): Entry => {
    checkResources(entry.place, entry.resources, resources)
    return {
      entry,
      match: compileMatcher(entry.match),
      audiences: new Set(entry.audiences),
      keys: keysOf(entry.issuer),
      mostMs: parseGoDuration(entry.maxTokenLifetime) ?? 0,
      lifetimeMs: entry.lifetime === undefined ? undefined : parseGoDuration(entry.lifetime),
    }
  })
  /** Throws `RefusedAssertion` for a reused token, `store_unavailable`. */
  const spend = async (issuer: string, { token, claims }: Assertion, mostMs: number): Promise<void> => {
    const id = typeof claims.jti === 'string' ? claims.jti : token
    const key = `assertion:${hashKey(['workload', issuer, id])}`
    const isNew = await store
      .putIfAbsent(key, Buffer.alloc(0), mostMs + (EARLY_SECONDS + EXPIRED_SECONDS) * 1_000)
      .catch((error: unknown) => {
        throw storeFailure(error)
      })
    if (!isNew) throw new RefusedAssertion('it was used before')
  }
  const byIssuer = Map.groupBy(entries, ({ entry }) => entry.issuer.issuerUrl)

  return {
    async accept(assertion, parameters) {
      const { claims, type } = assertion
      if (!TYPES.has(type)) throw new RefusedAssertion('typ is not that of a workload token')
      const ofIssuer = typeof claims.iss === 'string' ? byIssuer.get(claims.iss) : undefined
      if (ofIssuer === undefined) throw new RefusedAssertion('iss is not among workloads')
      const person = OF_PERSONS.find((name) => claims[name] !== undefined)
      if (person !== undefined) throw new RefusedAssertion(`it is about a person: it has ${person}`)
      const audience = audienceIn(claims)
      const forUs = ofIssuer.filter(({ audiences }) => audiences.has(audience))
      if (forUs.length === 0) throw new RefusedAssertion('aud must be this server only')
      if (claims.jti !== undefined) checkIdentifier(claims)
      checkUnbound(claims)
      const subject = subjectIn(claims)
      const { entry, keys, mostMs, lifetimeMs } = fitting(forUs, claims)
      checkTimes(claims, clock.now(), mostMs)
      checkLife(claims, mostMs)
      await checkSigned(assertion, keys.keys)
      // The token may have expired while keys were fetched.
      checkTimes(claims, clock.now(), mostMs)
      const { issuerUrl } = entry.issuer
      const resource = targetOf(parameters.resource, resources, entry)
      const scope = grantedScope(parameters.scope, resource, [entry.scopes])
      if (entry.isSingleUse) await spend(issuerUrl, assertion, mostMs)
      const id = subjectOf(issuerUrl, subject)
      return {
        grant: 'workload',
        // The workload is its own client (RFC 9068 §2.2).
        clientId: id,
        subject: id,
        resource: resource.url,
        scope,
        // Programs choose their names, so rules about people must not match them.
        claims: undefined,
        lifetimeMs,
        leftMs: entry.endsWithToken ? leftMs(claims, clock.now()) : undefined,
        by: `${entry.place} of ${issuerUrl}`,
      }
    },
    async close() {
      await Promise.all([...known.values()].map((keys) => keys.close()))
    },
  }
}

/** The first entry whose expression matches the claims. Throws `RefusedAssertion`. */
function fitting(entries: readonly Entry[], claims: Claims): Entry {
  const failed: string[] = []
  for (const one of entries) {
    const result = one.match.evaluate(claims)
    if (result.outcome === 'matched') return one
    // Regardless of other entries: claims that exceed the evaluation limit are rejected.
    if (result.outcome === 'limit')
      throw new RefusedAssertion(`${one.entry.place} exceeds the evaluation limit for its claims`)
    if (result.outcome === 'error') failed.push(`${one.entry.place}: ${result.reason}`)
  }
  throw new RefusedAssertion(['no entry of workloads matches its claims', ...failed].join('; '))
}

/** Remaining lifetime, at least a second. */
const leftMs = ({ exp }: Claims, nowMs: EpochMs): number =>
  typeof exp === 'number' ? Math.max(1_000, Math.floor(exp * 1_000 - nowMs)) : 1_000
