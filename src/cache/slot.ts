import type { EpochMs, MonotonicMs } from '../core/index.ts'
import type { ScopeCounters } from './counters.ts'

/** An MCPExternalAuthConfig in the cache; created by `CredentialCache.scope`. */
export interface CacheScope {
  /** `<namespace>/<name>` of the resource. */
  readonly config: string
  /** Its `type`, a metric label. */
  readonly type: string
  readonly counters: ScopeCounters
}

/** Version of a config and of its secrets that a credential was fetched with. */
export interface Generation {
  readonly configHash: string
  /** Digest of the secrets used for fetching; empty without any. */
  readonly secrets: string
}

/** Owner of a credential, for purge, removal and listing. */
export interface Ownership {
  readonly scope: CacheScope
  readonly generation: Generation
  readonly issuer: string
  readonly subject: string
  readonly role: string | undefined
}

/** A request to the cache: key, owner, and how to fetch. Callers keep it between requests. */
export interface CacheSlot<V> extends Ownership {
  /** From `hashKey`: identifies the credential. */
  readonly key: string
  /** Owner for the limit per caller, besides the issuer. */
  readonly ownerId: string
  /** Latest expiry of the credential. */
  readonly notAfterMs: number | undefined
  /** The key includes the caller's token, so its rejection is cached. Default false. */
  readonly isKeyedByToken?: boolean
  /** Of the request's token, if any: requests with different tokens may share a key. */
  readonly tokenDigest?: string | undefined
  /** Time limit of a request in milliseconds, including waiting for other replicas. */
  readonly deadlineMs: number
  /**
   * Fetches a new one with its expiry, by `endsAtMs` at the
   * latest. Throws `Failure`.
   */
  fetch(endsAtMs: MonotonicMs): Promise<{ readonly value: V; readonly expiresAtMs: EpochMs }>
}

/** Filter of a purge: all given fields must match. */
export interface PurgeFilter {
  readonly subject?: string
  readonly issuer?: string
  /** `<namespace>/<name>`, or the name alone. */
  readonly config?: string
  readonly role?: string
}

/** Whether a filter matches `owner`. */
export function matchesFilter(owner: Ownership, filter: PurgeFilter): boolean {
  const { config } = owner.scope
  return (
    (filter.subject === undefined || owner.subject === filter.subject) &&
    (filter.issuer === undefined || owner.issuer === filter.issuer) &&
    (filter.role === undefined || owner.role === filter.role) &&
    (filter.config === undefined || config === filter.config || config.endsWith(`/${filter.config}`))
  )
}
