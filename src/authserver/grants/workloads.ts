import { compileMatcher, type Matcher } from '../../cel/index.ts'
import type { Claims, Clock } from '../../core/index.ts'
import { parseGoDuration } from '../../fields/index.ts'
import { issuerOfWorkload, type WorkloadRule } from '../../resources/index.ts'
import { createTrustedKeys, type TrustedKeys, type UpstreamDeps } from '../../upstreams/index.ts'
import { checkResources } from '../clients/configured.ts'
import type { ResourceNames } from '../resource-names.ts'
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
import { RefusedAssertion } from './refused-assertion.ts'
import { grantedScope, targetOf } from './targets.ts'

/** `typ` of what platforms give their workloads: Kubernetes none, SPIFFE either, others JWT. */
const TYPES: ReadonlySet<string | undefined> = new Set([undefined, 'jwt', 'jose'])
/** What tells of somebody who logged in, or out: such a token is about a person, whoever holds it. */
const OF_PERSONS = ['nonce', 'auth_time', 'at_hash', 'c_hash', 'events'] as const

/** Tokens that platforms give their workloads (clientauth.md §3). */
export interface Workloads {
  /** What a token gives who shows it. Throws `RefusedAssertion`, `OAuthError`, and `Failure` while there are no keys. */
  accept(assertion: Assertion, parameters: TokenParameters): Promise<Granted>
  close(): Promise<void>
}

interface Entry {
  readonly rule: WorkloadRule
  /** For the log. */
  readonly name: string
  readonly match: Matcher
  readonly audiences: ReadonlySet<unknown>
  readonly keys: TrustedKeys
  readonly mostMs: number
  readonly lifetimeMs: number | undefined
}

/** Throws `config_error` for a resource that no route of this server has. */
export function createWorkloads(
  rules: readonly WorkloadRule[],
  options: {
    /** What stands for this server where an entry names nothing else: its issuer and its token endpoint. */
    readonly audiences: readonly string[]
    readonly resources: ResourceNames
    readonly clock: Clock
    readonly deps: UpstreamDeps
  },
): Workloads {
  const { resources, clock, deps } = options
  for (const [index, rule] of rules.entries()) checkResources(`workloads[${index}]`, rule.resources, resources)
  const known = new Map<string, TrustedKeys>()
  const keysOf = (rule: WorkloadRule): TrustedKeys => {
    const issuer = issuerOfWorkload(rule)
    const id = JSON.stringify(issuer)
    const keys = known.get(id) ?? createTrustedKeys(issuer, deps)
    known.set(id, keys)
    return keys
  }
  const entries = rules.map((rule, index): Entry => ({
    rule,
    name: `workloads[${index}]`,
    match: compileMatcher(rule.match),
    audiences: new Set(rule.audiences ?? options.audiences),
    keys: keysOf(rule),
    mostMs: parseGoDuration(rule.maxTokenLifetime) ?? 0,
    lifetimeMs: rule.lifetime === undefined ? undefined : parseGoDuration(rule.lifetime),
  }))
  const byIssuer = Map.groupBy(entries, ({ rule }) => rule.issuer)

  return {
    async accept(assertion, parameters) {
      const { claims, type } = assertion
      if (!TYPES.has(type)) throw new RefusedAssertion('typ is not that of a token of a workload')
      const ofIssuer = typeof claims.iss === 'string' ? byIssuer.get(claims.iss) : undefined
      if (ofIssuer === undefined) throw new RefusedAssertion('iss is not among workloads')
      const person = OF_PERSONS.find((name) => claims[name] !== undefined)
      if (person !== undefined) throw new RefusedAssertion(`it is about a person: it has ${person}`)
      const audience = audienceIn(claims)
      const forUs = ofIssuer.filter(({ audiences }) => audiences.has(audience))
      if (forUs.length === 0) throw new RefusedAssertion('aud is not us alone')
      if (claims.jti !== undefined) checkIdentifier(claims)
      checkUnbound(claims)
      const subject = subjectIn(claims)
      const { rule, name, keys, mostMs, lifetimeMs } = fitting(forUs, claims)
      checkTimes(claims, clock.now(), mostMs)
      checkLife(claims, mostMs)
      await checkSigned(assertion, keys.keys)
      // Waiting for keys took time.
      checkTimes(claims, clock.now(), mostMs)
      const resource = targetOf(parameters.resource, resources, { resources: rule.resources })
      const id = subjectOf(rule.issuer, subject)
      return {
        grant: 'workload',
        // No client stands behind it: it is its own (RFC 9068 §2.2).
        clientId: id,
        subject: id,
        resource: resource.url,
        scope: grantedScope(parameters.scope, resource, [rule.scopes ?? []]),
        // Rules about people must not be met by programs that are called as they like.
        claims: undefined,
        lifetimeMs,
        by: `${name} of ${rule.issuer}`,
      }
    },
    async close() {
      await Promise.all([...known.values()].map((keys) => keys.close()))
    },
  }
}

/** The first entry whose expression is true of the claims. Throws `RefusedAssertion`. */
function fitting(entries: readonly Entry[], claims: Claims): Entry {
  const failed: string[] = []
  for (const entry of entries) {
    const result = entry.match.evaluate(claims)
    if (result.outcome === 'matched') return entry
    // Whatever else fits: who makes it cost too much gets nothing.
    if (result.outcome === 'limit') throw new RefusedAssertion(`${entry.name}.match costs too much for its claims`)
    if (result.outcome === 'error') failed.push(`${entry.name}.match: ${result.reason}`)
  }
  throw new RefusedAssertion(['no entry of workloads matches its claims', ...failed].join('; '))
}
